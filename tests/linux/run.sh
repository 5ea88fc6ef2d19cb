# Runs each command of a file by a shell, in an empty directory, and prints what it prints and its status. A command is a line, and those behind it that begin with "> ", without
# that. $1: the shell, $2: the file, $3: the directory, $4: -f if the shell takes commands from a file only, one a line.
ulimit -n 1000
n=0 first=0 command=
run() {
    [ "$command" ] || return 0
    echo "@@ $first"
    mkdir -p "$3" && cd "$3" || exit 1
    if [ "$4" ]; then
        echo "$command" > "$3.in"
        $1 -f "$3.in" >"$3.out" 2>&1 </dev/null
    else
        $1 -c "$command" >"$3.out" 2>&1 </dev/null
    fi
    status=$?
    cat "$3.out"
    echo "@@ = $status"
    cd / && rm -rf "$3"
}
while IFS= read -r line; do
    n=$((n + 1))
    case $line in
        '> '*)
            command="$command
${line#> }"
            continue
            ;;
    esac
    run "$@"
    case $line in
        '' | '#'*) command= ;;
        *) command=$line first=$n ;;
    esac
done < "$2"
run "$@"
echo "@@ end"
