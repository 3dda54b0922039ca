# Harvests with Catmandu::OAI. See tests/e2e/test_harvesters.py.
use strict;
use warnings;
use Catmandu::Importer::OAI;
use JSON::PP;

my (@lists, @sets);
for my $selection (@{ decode_json(join '', <STDIN>) }) {
    my @found;
    my $importer = Catmandu::Importer::OAI->new(url => $ARGV[0], %$selection);
    eval {
        $importer->each(sub {
            my $record = shift;
            my $deleted = $record->{_status} eq 'deleted';
            push @found, [
                $record->{_id},
                $deleted ? JSON::PP::true : JSON::PP::false,
                $record->{_setSpec},
                $record->{title},
            ];
        });
        1;
    } or $@ =~ /noRecordsMatch|No records match|Nothing matches/i or die $@;
    push @lists, \@found;
}
Catmandu::Importer::OAI->new(url => $ARGV[0], listSets => 1)
    ->each(sub { push @sets, shift->{setSpec} });
print encode_json({ lists => \@lists, sets => \@sets });
