# Commits transactions with SQLite: the first word says how many, the second with which kind of journal. Each adds a row of 1,500 bytes and changes the row that
# has half its number. Numbers of those that are safe go to a file of their own.
{
    echo "pragma journal_mode=$2; pragma synchronous=full; create table t(n integer primary key, b blob);"
    n=1
    while [ "$n" -le "$1" ]; do
        echo "begin; update t set b = zeroblob($n) where n * 2 in ($n, $n - 1);"
        echo "insert into t values($n, randomblob(1500)); commit;"
        echo ".shell echo $n >> /data/numbers"
        n=$((n + 1))
    done
} | sqlite3 -bail /data/db && echo all are safe
