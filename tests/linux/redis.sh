# Commits transactions with redis: the first word says how many. Each makes a key and counts, in one step. Numbers of those that are safe go to a file of their own.
redis-server --port 0 --unixsocket /data/socket --save '' --appendonly yes --appendfsync always --dir /data > /dev/null &
until [ "$(redis-cli -s /data/socket ping)" = PONG ]; do
    sleep 0.1
done
n=1
while [ "$n" -le "$1" ]; do
    step="redis.call('set', KEYS[1], ARGV[1]) return redis.call('incr', 'n')"
    [ "$(redis-cli -s /data/socket eval "$step" 1 "key:$n" "value of $n")" = "$n" ] || exit 1
    echo "$n" >> /data/numbers
    n=$((n + 1))
done
redis-cli -s /data/socket shutdown
wait
echo all are safe
