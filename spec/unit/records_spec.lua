-- records_spec.lua: TFRecordWriter: what Lua values become, and what it refuses.
local support = require "spec.support.init"
local flow = require "flow"
local records = require "flow.data.records"
local message_of = support.message_of

local function read(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local bytes = file:read("*a")
  file:close()
  return bytes
end

local function fails(part, f, ...)
  local arguments = { ... }
  local text = message_of(function() f(unpack(arguments)) end)
  assert.truthy(text:find(part, 1, true), text)
end

describe("serialize_example", function()
  local bytes_of = records.serialize_example
  it("makes bytes of strings, int64 of whole numbers, float32 of others", function()
    assert.equal("\10\16\10\14\10\5label\18\5\26\3\10\1\7", bytes_of { label = 7 })
    assert.equal("\10\13\10\11\10\1x\18\6\10\4\10\0\10\0", bytes_of { x = { "", "" } })
    assert.equal(bytes_of { x = { 1.5, 2 } }, bytes_of({ x = { 1.5, 2 } }, { x = "float32" }))
    assert.not_equal(bytes_of { x = { 1, 2 } }, bytes_of({ x = { 1, 2 } }, { x = "float32" }))
    assert.equal(bytes_of({ x = { 1, 2 } }, { x = "float32" }), bytes_of { x = flow.tensor { 1, 2 } })
    assert.equal(bytes_of { x = { 1, 0, -3 } }, bytes_of { x = flow.tensor({ 1, 0, -3 }, { dtype = "int8" }) })
    assert.equal(bytes_of { x = { 1, 0 } }, bytes_of { x = { true, false } })
    assert.equal(bytes_of { x = 9007199254740992 }, bytes_of { x = 9007199254740992LL })
    assert.equal(bytes_of { x = "\1\2" }, bytes_of({ x = flow.tensor({ 1, 2 }, { dtype = "uint8" }) }, { x = "bytes" }))
  end)

  it("refuses what has no place in an Example", function()
    fails('feature "x" mixes strings and numbers', bytes_of, { x = { "a", 1 } })
    fails('feature "x" holds a table', bytes_of, { x = { {} } })
    fails('feature "x" is int64, it holds the number 1.5', bytes_of, { x = 1.5 }, { x = "int64" })
    fails('feature "x" is bytes, it holds the number 1', bytes_of, { x = 1 }, { x = "bytes" })
    fails('the kind of "x" is "bytes", "float32" or "int64"', bytes_of, { x = 1 }, { x = "float" })
    fails("the name of a feature is a string", bytes_of, { 1 })
    fails("takes a table of features", bytes_of, 1)
    fails('write_example: feature "x": entry 2 of the list is nil', bytes_of, { x = { 1, nil, 3 } })
    fails('feature "x" is a table with names, expected a string, a number, a tensor or a list', bytes_of, { x = { a = 1 } })
  end)
end)

describe("TFRecordWriter", function()
  it("writes the file when it is closed", function()
    local path = support.file("marker", ""):gsub("marker$", "records")
    local writer = records.TFRecordWriter(path)
    writer:write("hello")
    assert.is_nil(read(path))
    writer:close()
    writer:close()
    assert.equal("\5\0\0\0\0\0\0\0\234\178\4\62hello\187\31\28\25", read(path))
    fails("is closed: it takes no more records", writer.write, writer, "more")
  end)

  it("refuses what it cannot write", function()
    local path = support.file("marker", ""):gsub("marker$", "records")
    fails('compression_type is "", "GZIP" or "ZLIB", found "LZ4"', records.TFRecordWriter, path, { compression_type = "LZ4" })
    fails("a path is a string", records.TFRecordWriter, 7)
    fails("a record is a string of bytes, got the number 7", function() records.TFRecordWriter(path):write(7) end)
    fails("/nowhere/at/all", records.TFRecordWriter, "/nowhere/at/all")
    fails('unknown option "compression"', records.TFRecordWriter, path, { compression = "GZIP" })
  end)
end)
