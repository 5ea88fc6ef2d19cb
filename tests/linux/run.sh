# Runs each line of a file by a shell, in an empty directory, and prints what it prints and its status. $1: the shell, $2: the file, $3: the directory.
ulimit -n 1000
n=0
while IFS= read -r line; do
    n=$((n + 1))
    case $line in '' | '#'*) continue ;; esac
    echo "@@ $n"
    mkdir -p "$3" && cd "$3" || exit 1
    $1 -c "$line" >"$3.out" 2>&1 </dev/null
    status=$?
    cat "$3.out"
    echo "@@ = $status"
    cd / && rm -rf "$3"
done < "$2"
echo "@@ end"
