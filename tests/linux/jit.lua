-- Loops that LuaJIT compiles while they run: whoever writes code may not run it, so the pages of code change from one to the other with each piece. It prints one line for each
-- thing, the same on Linux and on Tern.

local ffi = require("ffi")
ffi.cdef [[
int getpid(void);
typedef int (*comparison)(const void *, const void *);
void qsort(void *, size_t, size_t, comparison);
]]

local PLACE = arg[1]

-- Traces that have been made, of which each has written code.
local traces = 0
jit.attach(function(what)
    if what == "stop" then
        traces = traces + 1
    end
end, "trace")

local function sum(to)
    local all = 0
    for number = 1, to do
        all = all + number % 7 * (number % 3)
    end
    return all
end

-- Loops of their own, each of which is compiled apart.
local function many(count)
    local all = 0
    for number = 1, count do
        local run = loadstring("local all = 0 for i = 1, 200 do all = all + i * " .. number .. " end return all")
        all = all + run()
    end
    return all
end

-- A trace is left where a guard fails, and another one goes on from there.
local function branches(to)
    local kinds = { 0, 0, 0 }
    for number = 1, to do
        if number % 15 == 0 then
            kinds[1] = kinds[1] + 1
        elseif number % 5 == 0 then
            kinds[2] = kinds[2] + 1
        elseif number > 900 then
            kinds[3] = kinds[3] + number
        end
    end
    return table.concat(kinds, " ")
end

local function texts(to)
    local parts = {}
    for number = 1, to do
        parts[#parts + 1] = string.format("%x", number):rep(2):upper()
    end
    return #table.concat(parts, ",")
end

-- C calls back into Lua, by code that is made for it.
local function sorted(count)
    local numbers = ffi.new("int[?]", count)
    for place = 0, count - 1 do
        numbers[place] = place * 7919 % count
    end
    local compare = ffi.cast("comparison", function(one, other)
        return ffi.cast("const int *", one)[0] - ffi.cast("const int *", other)[0]
    end)
    ffi.C.qsort(numbers, count, 4, compare)
    compare:free()
    for place = 0, count - 1 do
        if numbers[place] ~= place then
            return "wrong at " .. place
        end
    end
    return "sorted " .. count
end

local function calls(count)
    local pid, same = ffi.C.getpid(), 0
    for _ = 1, count do
        if ffi.C.getpid() == pid then
            same = same + 1
        end
    end
    return same
end

-- Pages that can be written and run at once. There are none while a program is compiled, as the memory map says.
local function pages()
    local both, only_run = 0, 0
    for line in io.lines("/proc/self/maps") do
        local rights, path = line:match("^%S+ (%S+) %S+ %S+ %S+%s*(.*)$")
        if rights:match("^.wx") then
            both = both + 1
        elseif rights:match("^r.x") and path == "" then
            only_run = only_run + 1
        end
    end
    return both .. " " .. tostring(only_run > 0)
end

local function with_files(place)
    local path = place .. "/jit"
    local file = assert(io.open(path, "w"))
    for number = 1, 2000 do
        file:write(number, "\n")
    end
    file:close()
    local all = 0
    for line in io.lines(path) do
        all = all + tonumber(line)
    end
    os.remove(path)
    return all
end

print("on: " .. tostring(jit.status()))
print("sum: " .. sum(1e6))
print("many: " .. many(300))
print("branches: " .. branches(2000))
print("texts: " .. texts(3000))
print("calls back: " .. sorted(500))
print("calls: " .. calls(2000))
print("pages: " .. pages())
print("files: " .. with_files(PLACE))
local compiled = traces
jit.off()
jit.flush()
print("without: " .. sum(1e5) .. " " .. branches(2000) .. " " .. traces - compiled)
jit.on()
print("again: " .. sum(1e5) .. " " .. many(50))
print("pieces: " .. tostring(traces > 300))
print("all is well")
