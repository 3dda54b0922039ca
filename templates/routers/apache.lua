-- Answers OAI-PMH from a site of Sheaf: a handler of Apache's mod_lua.
local ROOT, BASE = '@ROOT@', '@BASE@'
local FORM, LETTERS = 'application/x-www-form-urlencoded', {ListRecords = 'r', ListIdentifiers = 'i'}
local BAD_TOKEN = {{'badResumptionToken',
  'This repository did not issue this resumption token for this verb.'}}
local ESCAPES = {['&'] = '&amp;', ['<'] = '&lt;', ['>'] = '&gt;', ['"'] = '&#34;', ["'"] = '&#39;',
  ['\t'] = '&#9;', ['\n'] = '&#10;', ['\r'] = '&#13;', ['\239\191\190'] = '\239\191\189',
  ['\239\191\191'] = '\239\191\189'}

local function escape(text)
  text = text:gsub('[%z\1-\8\11\12\14-\31]', ''):gsub('\239\191[\190\191]', ESCAPES)
  return (text:gsub('[&<>"\'\t\n\r]', ESCAPES))
end

-- Returns what replaces text in string.gsub, as it is.
local function plain(text)
  return (text:gsub('%%', '%%%%'))
end

local function show(text)
  if utf8.len(text) > 80 then text = text:sub(1, utf8.offset(text, 81) - 1) .. '...' end
  return '"' .. text .. '"'
end

local function read(path)
  local file = io.open(ROOT .. '/' .. path, 'rb')
  if not file then return nil end
  local text = file:read('a')
  file:close()
  return text
end

-- Returns the value at a place of a text of JSON that we wrote, and the place behind it.
local function parseJson(text, at)
  at = text:find('%S', at)
  local first = text:sub(at, at)
  if first == '"' then
    local stop = at
    repeat
      stop = text:find('["\\]', stop + 1)
      local escaped = text:sub(stop, stop) == '\\'
      if escaped then stop = stop + 1 end
    until not escaped
    local value = text:sub(at + 1, stop - 1):gsub('\\(.)(%x?%x?%x?%x?)', function(kind, code)
      if kind == 'u' then return utf8.char(tonumber(code, 16)) end
      return (({n = '\n', t = '\t', r = '\r', b = '\b', f = '\f'})[kind] or kind) .. code
    end)
    return value, stop + 1
  elseif first == '{' or first == '[' then
    local values, close = {}, first == '{' and '}' or ']'
    at = text:find('%S', at + 1)
    while text:sub(at, at) ~= close do
      local key, value = #values + 1, nil
      if close == '}' then
        key, at = parseJson(text, at)
        at = text:find(':', at, true) + 1
      end
      value, at = parseJson(text, at)
      values[key] = value
      at = text:find('[^%s,]', at)
    end
    return values, at + 1
  end
  local word = text:match('^[%w.+-]+', at)
  return ({['true'] = true, ['false'] = false})[word] or tonumber(word), at + #word
end

local function readJson(path)
  local text = read(path)
  return text and (parseJson(text, 1))
end

local function decode(text)
  text = text:gsub('+', ' '):gsub('%%(%x%x)', function(code) return string.char(tonumber(code, 16)) end)
  return utf8.len(text) and text or '\u{fffd}'
end

local function has(list, value)
  for _, each in ipairs(list) do
    if each == value then return true end
  end
  return false
end

-- Returns whether a value has the form of an argument.
local function fits(r, router, name, value)
  local match = r:regex(value, '(*UTF)^(?:' .. router.forms[name][1] .. ')$')
  return match and match[0] == value
end

-- Returns the request of a query and a body: its verb, values and pairs, and its faults.
local function parse(r, router, text)
  local request = {values = {}, pairs = {}, faults = {}}
  local values, faults, keys, count, empty, verbs = request.values, request.faults, {}, {}, {}, {}
  local function bad(code, message) faults[#faults + 1] = {code, message} end
  for part in text:gmatch('[^&]+') do
    local key, value = part:match('^([^=]*)=?(.*)$')
    key, value = decode(key), decode(value)
    table.insert(request.pairs, {key, value})
    if key == 'verb' then
      verbs[#verbs + 1] = value
    else
      if not count[key] then keys[#keys + 1] = key end
      count[key], values[key] = (count[key] or 0) + 1, value
      if value == '' and not has(empty, key) then empty[#empty + 1] = key end
    end
  end
  local names = {}
  for name in pairs(router.verbs) do names[#names + 1] = name end
  table.sort(names)
  local expected, name = '; expected one of ' .. table.concat(names, ', ') .. '.', verbs[1]
  local verb = name and router.verbs[name]
  if not name then bad('badVerb', 'The verb is missing' .. expected)
  elseif #verbs > 1 then bad('badVerb', 'The verb is repeated.')
  elseif not verb then bad('badVerb', show(name) .. ' is not a verb' .. expected)
  end
  if #faults > 0 then return request end
  request.verb = name
  local allowed, wrong = {table.unpack(verb.required)}, 0
  table.move(verb.optional, 1, #verb.optional, #allowed + 1, allowed)
  if verb.exclusive ~= '' then allowed[#allowed + 1] = verb.exclusive end
  local function each(list, test, head, tail)
    for _, key in ipairs(list) do
      if test(key) then bad('badArgument', head:gsub('*', plain(show(key))) .. tail(key)) end
    end
  end
  each(keys, function(key) return not has(allowed, key) end, name .. ' has no argument *.', function() return '' end)
  local function argument(list, test, what)
    each(list, test, 'The argument ', function(key) return key .. what end)
  end
  argument(keys, function(key) return count[key] > 1 end, ' is repeated.')
  argument(empty, function() return true end, ' is empty.')
  if not count[verb.exclusive] then
    argument(verb.required, function(key) return not count[key] end, ' is missing.')
  elseif #keys > 1 then
    bad('badArgument', verb.exclusive .. ' cannot be combined with other arguments.')
  end
  for n = 9, #faults do faults[n] = nil end
  table.sort(allowed)
  for _, key in ipairs(allowed) do
    local value = values[key]
    if value and value ~= '' and not fits(r, router, key, value) then
      wrong = wrong + 1
      bad('badArgument', key .. ' is ' .. show(value) .. ', expected ' .. router.forms[key][2] .. '.')
    end
  end
  local from, til = values.from or '', values['until'] or ''
  if wrong == 0 and fits(r, router, 'from', from) and fits(r, router, 'until', til) then
    if #from ~= #til then bad('badArgument', 'from and until have different granularities.')
    elseif from > til then bad('badArgument', 'from is later than until.')
    end
  end
  return request
end

-- Returns the kind, position and identifier of an item by that or by another name, or nil.
local function findPlace(r, router, id)
  for _, text in ipairs({id, (id:gsub('^oai:', ''):lower())}) do
    local hash = r:sha1(text)
    for _, name in ipairs({'recent', hash:sub(1, router.digits)}) do
      local place = (readJson('index/' .. name .. '.json') or {})[hash:sub(1, 16)]
      if place then return router.kinds[place[1] + 1], place[2], place[3] or id end
    end
  end
end

-- Returns the pages of a list: instant, first position and file of each, and whether it is shared, a
-- page of the list of all records. And whether there is such a list.
local function readChain(r, folder, spec)
  local name = folder .. (spec == '' and '/all' or '/set/' .. spec)
  if #spec > 200 or spec == '.' or spec == '..' then name = folder .. '/set/sha1-' .. r:sha1(spec) end
  local segments, pages = readJson(name .. '.json'), {}
  for _, segment in ipairs(segments or {}) do
    local stem = segment[3] and folder .. '/all/' or name .. '/'
    for _, first in ipairs(segment[2]) do
      pages[#pages + 1] = {segment[1], first, stem .. first .. '.xml', segment[3]}
    end
  end
  return pages, segments ~= nil
end

-- Returns the index of the page that has a position, or 1.
local function findPage(pages, position)
  local at = 1
  while pages[at + 1] and pages[at + 1][2] <= position do at = at + 1 end
  return at
end

-- Returns what a function returns of the first record of a page of which it is not nil. Metadata has
-- records of its own, and comments and CDATA may have what looks like some.
local function eachRecord(page, visit)
  local depth, start, at = 0, 0, page:find('<', 1, true)
  while at do
    local stop = at + 1
    if page:sub(at, at + 3) == '<!--' then
      stop = select(2, page:find('-->', at + 4, true))
    elseif page:sub(at, at + 8) == '<![CDATA[' then
      stop = select(2, page:find(']]>', at, true))
    elseif page:find('^</record[%s>]', at) then
      depth, stop = depth - 1, page:find('>', at, true)
      if depth == 0 then
        local result = visit(page:sub(start, stop))
        if result then return result end
      end
    elseif page:find('^<record[%s/>]', at) then
      repeat  -- a value of an attribute may have the end of a tag
        stop = page:find('[>"\']', stop)
        local quote = page:sub(stop, stop)
        if quote ~= '>' then stop = page:find(quote, stop + 1, true) + 1 end
      until quote == '>'
      if page:sub(stop - 1, stop - 1) ~= '/' then
        if depth == 0 then start = at end
        depth = depth + 1
      end
    end
    at = page:find('<', stop, true)
  end
end

-- Returns the record of an item out of the page that has its position, or nil.
local function cut(r, folder, position, id)
  local pages = readChain(r, folder, '')
  local page, own = pages[1] and read(pages[findPage(pages, position)][3]), '<identifier>' .. escape(id) .. '</identifier>'
  if not page or not page:find(own, 1, true) then return nil end
  return eachRecord(page, function(record)
    local place = record:find('<identifier>', 1, true)
    return place and record:sub(place, place + #own - 1) == own and record or nil
  end)
end

-- Returns the content of a page of a set: those records of a page of all that are in it.
local function choose(page, verb, spec)
  local mark, chosen = '<setSpec>' .. escape(spec), {}
  local function visit(record)
    local stop, at = record:find('</header>', 1, true), 1
    repeat
      at = select(2, record:find(mark, at + 1, true))
    until not at or record:find('^[<:]', at + 1)
    if at and at < stop then chosen[#chosen + 1] = record .. '\n' end
  end
  if verb == 'ListRecords' then eachRecord(page, visit)
  else
    for header in page:gmatch('<header[ >].-</header>') do visit(header) end
  end
  return chosen[1] and '<' .. verb .. '>\n' .. table.concat(chosen)
end

local function page(r, router, request)
  local values, letter, token = request.values, LETTERS[request.verb], request.values.resumptionToken
  local prefix, spec, til, first = values.metadataPrefix, values.set or '', values['until'] or '', 0
  if token then
    local m = r:regex(token, '^([ri]),([^,]+),([0-9]{1,15})(?:,([^,]*)(?:,([0-9-]{10}T[0-9:]{8}Z))?)?$')
    if not m or m[0] ~= token or m[1] ~= letter then return BAD_TOKEN end
    prefix, first, spec, til = m[2], tonumber(m[3]), m[4] or '', m[5] or ''
  end
  local row, faults = router.formats[prefix], {}
  if not row then
    faults[1] = {'cannotDisseminateFormat', 'There is no metadata format ' .. show(prefix) .. ' here.'}
  end
  if spec ~= '' and not router.has_sets then
    faults[#faults + 1] = {'noSetHierarchy', 'This repository has no sets.'}
  end
  if #faults > 0 then return token and BAD_TOKEN or faults end
  if spec ~= '' and not fits(r, router, 'set', spec) then return BAD_TOKEN end
  if #til == 10 then til = til .. 'T23:59:59Z' end
  local pages, exists = readChain(r, row[letter], spec)
  local at = token and findPage(pages, first) or 1
  while pages[at] and pages[at][1] < (values.from or '') do at = at + 1 end
  while pages[at] and (til == '' or pages[at][1] <= til) do
    local file, is_shared, following = pages[at][3], pages[at][4], pages[at + 1]
    if token and til == '' and pages[at][2] == first and not is_shared then return nil, file end
    if following and til ~= '' and following[1] > til then following = nil end
    local text = read(file)
    local head = is_shared and choose(text, request.verb, spec)
    if not is_shared then
      local begin = text:find('<resumptionToken[^<]*[^<]*<?/?[^<]*>%s*</List%a+>%s*</OAI%-PMH>%s*$')
      if not begin or (following and til == '') then return text end
      head = text:sub(1, begin - 1)
    end
    if head then  -- else nothing of the set is left there
      local tail, parts = token and '<resumptionToken/>\n' or '', {letter, prefix}
      if following then
        parts[3], parts[4], parts[5] = following[2], spec, til ~= '' and til or nil
        tail = '<resumptionToken>' .. table.concat(parts, ',') .. '</resumptionToken>\n'
      end
      head = head .. tail .. '</' .. request.verb .. '>\n'
      return is_shared and {{head}} or head .. '</OAI-PMH>\n'
    end
    at = at + 1
  end
  return token and BAD_TOKEN or {{'noRecordsMatch', exists
    and 'Nothing matches, or what matched has changed since.'
    or 'There are no records in a set ' .. show(spec) .. '.'}}
end

-- Returns XML, or faults, or nothing and a file.
local function find(r, router, request)
  local values, verb, id = request.values, request.verb, request.values.identifier
  local token, kind, position, own = values.resumptionToken, nil, nil, nil
  if id then kind, position, own = findPlace(r, router, id) end
  local unknown = {'idDoesNotExist', 'There is no item ' .. show(id or '') .. '.'}
  if verb == 'Identify' then return read('identify.xml') end
  if LETTERS[verb] then return page(r, router, request) end
  if verb == 'ListSets' then
    if not token and not router.has_sets then return {{'noSetHierarchy', 'This repository has no sets.'}} end
    local number = token and (token:match('^s,(%d+)$') or 'none')
    return read('sets/' .. (number or 0) .. '.xml') or BAD_TOKEN
  elseif verb == 'ListMetadataFormats' then
    if not id then return read('formats.xml') end
    if not kind then return {unknown} end
    local text = read('formats/' .. kind .. '.xml') or ''
    if has(router.sifted, kind) then
      text = text:gsub('<metadataFormat>%s*<metadataPrefix>([^<]*)<.-</metadataFormat>\n?', function(prefix)
        local row = router.formats[prefix]
        if not row or not cut(r, row.r, position, own) then return '' end
      end)
    end
    return text:find('<metadataFormat>', 1, true) and text
      or {{'noMetadataFormats', 'Items such as ' .. show(id) .. ' have no format.'}}
  end
  local row, faults = router.formats[values.metadataPrefix], {}
  local record = kind and row and has(row.kinds, kind) and cut(r, row.r, position, own)
  if record then return {{'<GetRecord>\n' .. record .. '\n</GetRecord>\n'}} end
  if not kind then faults[1] = unknown end
  if kind or not row then
    faults[#faults + 1] = {'cannotDisseminateFormat', 'This item has no format ' .. show(values.metadataPrefix) .. '.'}
  end
  return faults
end

local function write(router, request, content)
  if type(content) == 'table' then
    local oai, parts = 'http://www.openarchives.org/OAI/2.0/', {}
    for _, fault in ipairs(content) do
      parts[#parts + 1] = #fault < 2 and fault[1]
        or '<error code="' .. fault[1] .. '">' .. escape(fault[2]) .. '</error>\n'
    end
    content = '<?xml version="1.0" encoding="UTF-8"?>\n<OAI-PMH xmlns="' .. oai ..
      '" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="' .. oai .. ' ' ..
      oai .. 'OAI-PMH.xsd">\n<responseDate></responseDate><request></request>\n' ..
      table.concat(parts) .. '</OAI-PMH>\n'
  end
  local attributes = {}
  for _, pair in ipairs(#request.faults == 0 and request.pairs or {}) do
    attributes[#attributes + 1] = ' ' .. pair[1] .. '="' .. escape(pair[2]) .. '"'
  end
  local base = BASE ~= '' and BASE or router.base
  local head = '<responseDate>' .. router.response_date .. '</responseDate>\n<request' ..
    table.concat(attributes) .. '>' .. escape(base) .. '</request>'
  content = content:gsub('<responseDate>[^<]*</responseDate>%s*<request[^>]*>[^<]*</request>', plain(head), 1)
  if base ~= router.base then
    content = content:gsub(escape(router.base):gsub('%p', '%%%0'), plain(escape(base)))
  end
  return content
end

-- The handler of Apache.
function handle(r)
  local is_post, allow = r.method == 'POST', 'GET, HEAD, POST'
  if not is_post and r.method ~= 'GET' and r.method ~= 'HEAD' then
    r.err_headers_out['Allow'], r.status, r.content_type = allow, 405, 'text/plain; charset=utf-8'
    r:write('Use one of: ' .. allow .. '.\n')
    return apache2.OK
  end
  local router, query = readJson('router.json'), r.args or ''
  local body = is_post and r:requestbody() or ''
  local kind, request = (r.headers_in['Content-Type'] or ''):match('^%s*([^;]*)'):gsub('%s+$', ''):lower(), nil
  if body ~= '' and kind ~= FORM then
    request = {pairs = {}, faults = {{'badArgument', 'The body of a POST must be ' .. FORM .. '.'}}}
  elseif #query + #body > 65536 then
    request = {pairs = {}, faults = {{'badArgument', 'The request is longer than 65536 characters.'}}}
  else
    request = parse(r, router, query .. '&' .. body)
  end
  local content, file
  if #request.faults > 0 then content = request.faults else content, file = find(r, router, request) end
  r.content_type = 'text/xml; charset=utf-8'
  local document, tag
  if file then
    local is_packed = (r.headers_in['Accept-Encoding'] or ''):find('gzip', 1, true)
    local packed = is_packed and r:stat(ROOT .. '/' .. file .. '.gz')
    if packed then
      file, r.headers_out['Content-Encoding'] = file .. '.gz', 'gzip'
    end
    local stat = packed or r:stat(ROOT .. '/' .. file)
    tag = string.format('"%x-%x%s"', stat.mtime, stat.size, packed and '-gzip' or '')
    r.headers_out['Vary'] = 'Accept-Encoding'
  else
    document = write(router, request, content)
    tag = '"' .. r:sha1(document:gsub('<responseDate>.-</responseDate>', '', 1)) .. '"'
  end
  r.headers_out['ETag'] = file and tag or 'W/' .. tag
  if not is_post and (r.headers_in['If-None-Match'] or ''):find(tag, 1, true) then
    r.status = 304
    return apache2.OK
  end
  if file then r:sendfile(ROOT .. '/' .. file) else r:write(document) end
  return apache2.OK
end
