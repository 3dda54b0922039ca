// Harvests with the package `oai-pmh` of npm. See tests/e2e/test_harvesters.py.
const { OaiPmh } = require('oai-pmh')

const many = value => value === undefined ? [] : Array.isArray(value) ? value : [value]

async function harvested (client, selection) {
  const found = []
  try {
    for await (const record of client.listRecords({ metadataPrefix: 'oai_dc', ...selection })) {
      const { header, metadata } = record
      const deleted = header.$ !== undefined && header.$.status === 'deleted'
      const titles = metadata && many(metadata['oai_dc:dc']['dc:title'])
      found.push([header.identifier, deleted, many(header.setSpec), titles])
    }
  } catch (error) {
    if (error.code !== 'noRecordsMatch') throw error
  }
  return found
}

async function main () {
  const client = new OaiPmh(process.argv[2])
  const lists = []
  for (const selection of JSON.parse(require('fs').readFileSync(0))) {
    lists.push(await harvested(client, selection))
  }
  const sets = []
  for await (const set of client.listSets()) sets.push(set.setSpec)
  process.stdout.write(JSON.stringify({ lists, sets }))
}

main().catch(error => { console.error(error); process.exit(1) })
