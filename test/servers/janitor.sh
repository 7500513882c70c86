#!/bin/sh
# janitor.sh: outlives the process that started a server, and clears up after it.
#
# It waits for the end of its standard input. That comes when the parent says so (stop) and when the parent dies, however
# it dies: the kernel closes the pipe. Then the server and its children are killed and the directory is removed. One path
# for a clean stop and a crash, so that the path for the crash is exercised by every test.
#
# ARGUMENTS  directory of the server; the pid of the running server is in its file `pid`
trap '' HUP INT TERM
dir=$1

# Never written to: `read` returns at the end of the pipe only.
read -r _

children_of() { ps -A -o pid= -o ppid= | awk -v parent="$1" '$2 == parent { print $1 }'; }

if pid=$(cat "$dir/pid" 2>/dev/null) && [ -n "$pid" ]; then
  # A pid may have been given to another process by now: ours names its directory on its command line.
  case $(ps -p "$pid" -o command= 2>/dev/null) in
    *"$dir"*)
      # Stopped first, so that it cannot fork a child between the listing and the kill.
      kill -STOP "$pid" 2>/dev/null
      children=$(children_of "$pid")
      # shellcheck disable=SC2086
      kill -KILL "$pid" $children 2>/dev/null
      tries=0
      # shellcheck disable=SC2086
      while [ "$tries" -lt 100 ] && kill -0 "$pid" $children 2>/dev/null; do
        tries=$((tries + 1))
        sleep 0.05
      done
      ;;
  esac
fi

# A PostgreSQL that was killed leaves a small System V segment; its id is on line 7 of postmaster.pid.
if [ -f "$dir/data/postmaster.pid" ]; then
  segment=$(awk 'NR == 7 { print $2 }' "$dir/data/postmaster.pid")
  [ -n "$segment" ] && ipcrm -m "$segment" 2>/dev/null
fi

rm -rf "$dir"
