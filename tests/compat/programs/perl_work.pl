# perl: files, patterns, pipes, fork, sockets on the own loopback, core modules with C code.
use strict; use warnings;
use Digest::SHA 'sha256_hex'; use File::Temp 'tempdir'; use IO::Socket::INET;
use List::Util 'sum'; use POSIX ':sys_wait_h';
use Storable qw(freeze thaw); use Time::HiRes 'usleep'; use JSON::PP; use Encode; use File::Find; use File::Copy;
my $dir = tempdir(CLEANUP => 1);
open my $out, '>:utf8', "$dir/a" or die $!; print $out "line $_ ü\n" for 1 .. 100; close $out;
copy("$dir/a", "/workspace/b") or die $!;
open my $in, '<:utf8', "/workspace/b" or die $!; my @numbers = map { /(\d+)/ ? $1 : () } <$in>; close $in;
my $found = 0; find(sub { $found++ if -f }, $dir); die unless $found == 1;
my $pid = open(my $pipe, '-|') // die $!;
if (!$pid) { print "from child\n"; exit 4 } 
my $line = <$pipe>; close $pipe; die unless $? >> 8 == 4;
my $server = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1') or die $!;
if (!fork) {
  my $c = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $server->sockport) or die $!;
  print $c "socket\n"; exit
}
my $text = $server->accept->getline; wait;
local $SIG{ALRM} = sub { die "alarm\n" }; eval { alarm 1; usleep 5_000_000; }; die unless $@ eq "alarm\n";
my $json = encode_json(thaw(freeze([1, { a => 2 }])));
print "perl ok ", sum(@numbers), " $json ", substr(sha256_hex('belljar'), 0, 8), " $text";
