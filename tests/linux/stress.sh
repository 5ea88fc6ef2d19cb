# Runs classes of stress-ng, one after the other: the first word is by how much more work than the list says, and the second of how many classes it is one. Each ends by itself, checks its results, and says so by its status. Every third one is of those without which no program works, so that a part of them has these.
number=0
while read -r class operations options; do
    number=$((number + 1))
    [ $((number % $2)) = 0 ] || continue
    stress-ng --quiet --verify --temp-path /tmp --"$class" 1 --"$class-ops" $((operations * $1)) $options ||
        { echo "$class: $?"; exit 1; }
    echo "$class"
done <<END
vfork 40
sem-sysv 400
cpu 20 --cpu-method fft
mq 400
msg 400
vm 200 --vm-bytes 2m --vm-keep
shm-sysv 4 --shm-sysv-bytes 1m
sock 20
pipe 2000
eventfd 400
epoll 100
futex 2000
poll 200
timerfd 50 --timerfd-freq 1000
sigq 400
clone 50
pthread 100
fork 40
mutex 500
memfd 4 --memfd-bytes 2m
mmap 2 --mmap-bytes 1m
rename 100
seek 50 --seek-size 1m
kill 400
switch 1000
nanosleep 50
END
echo all classes
