#!/bin/sh
# Makes certificates for Squid; the first process makes the database that all of them share.
exec 9> "{{ work }}/certificates.lock"
flock 9
[ -d "{{ work }}/certificates" ] || /usr/lib/squid/security_file_certgen -c -s "{{ work }}/certificates" -M 64MB > /dev/null
exec 9>&-
exec /usr/lib/squid/security_file_certgen -s "{{ work }}/certificates" -M 64MB
