# Harvests with HTTP::OAI. See tests/e2e/test_harvesters.py. A second argument: all elements.
use strict;
use warnings;
use HTTP::OAI;
use HTTP::OAI::Metadata::OAI_DC;
use JSON::PP;

my $harvester = HTTP::OAI::Harvester->new(baseURL => $ARGV[0]);
my (@lists, @sets);

sub check {
    my $response = shift;
    die $response->message if !$response->is_success;
    my $error = $response->error;
    die $error->code if $error && $error->code ne 'noRecordsMatch';
}

for my $selection (@{ decode_json(join '', <STDIN>) }) {
    my @found;
    my $response = $harvester->ListRecords(
        %$selection,
        metadataPrefix => 'oai_dc',
        handlers       => { metadata => 'HTTP::OAI::Metadata::OAI_DC' },
        onRecord       => sub {
            my $record = shift;
            my $deleted = ($record->status // '') eq 'deleted';
            push @found, [
                $record->identifier,
                $deleted ? JSON::PP::true : JSON::PP::false,
                [ $record->header->setSpec ],
                $record->metadata
                ? $ARGV[1] ? $record->metadata->dc : $record->metadata->dc->{title}
                : undef,
            ];
        },
    );
    check($response);
    push @lists, \@found;
}
check($harvester->ListSets(onRecord => sub { push @sets, shift->setSpec }));
print encode_json({ lists => \@lists, sets => \@sets });
