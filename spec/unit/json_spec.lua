-- json_spec.lua: what goes in comes out, what is not JSON is an error that says where.
local support = require "spec.support.init"
require "flow"
local json = require "flow.json"
local message_of = support.message_of

local function fails(part, f, ...)
  local text = message_of(f, ...)
  assert.truthy(text:find(part, 1, true), text)
end

describe("JSON", function()
  it("is printed with sorted keys, empty lists and reals as they are meant", function()
    local value = { b = { 1, 2, { c = json.real(1) } }, a = json.list {}, d = json.null, e = "x\"y\n",
      f = {}, g = json.printed('{"q":1.0}') }
    assert.equal('{"a":[],"b":[1,2,{"c":1.0}],"d":null,"e":"x\\"y\\n","f":{},"g":{"q":1.0}}', json.encode(value))
    assert.equal("[0.1,1e-07,123456789012,-0.5]", json.encode { 0.1, 1e-7, 123456789012, -0.5 })
  end)

  it("reads what it prints, and what others print", function()
    local value = json.decode('\n{"a": [1, null, {"b": true}], "c": "\\u00e4", "d": {}, "n": -1.5e3}\t')
    assert.same({ 1, json.null, { b = true } }, value.a)
    assert.equal("ä", value.c)
    assert.equal(nil, next(value.d))
    assert.equal(-1500, value.n)
    local number = 0.1 + 0.2
    assert.equal(number, json.decode(json.encode { number })[1])
  end)

  it("finds no keys in a list, nor on a way through one", function()
    assert.same({ "c", "b" }, json.keys('{"a":{"c":1,"b":2}}', "a"))
    assert.same({}, json.keys('{"a":[{"b":1}]}', "a", "b"))
    assert.same({}, json.keys('{"a":[1,2]}', "a"))
    assert.same({}, json.keys("[1]"))
  end)

  it("refuses what is not JSON", function()
    fails("m.json: this is not JSON: something follows the value, at byte 9", function() json.decode('{"a":1} x', "m.json") end)
    fails("it ends early or is wrong at byte 5 of 5", function() json.decode('{"a":', "m.json") end)
    fails("this is not JSON", function() json.decode("") end)
    fails("nested more than 1000 deep is not read: it is at byte 1001", function() json.decode(("["):rep(100000)) end)
    fails("has no form in JSON", function() json.encode { f = fails } end)
    fails("a key is", function() json.encode { [{}] = 1 } end)
    fails('a list has the name "x", too', function() json.encode { { 1, 2, x = 3 } } end)
    local loop = {}
    loop.x = loop
    fails("nested more than 800 deep", function() json.encode(loop) end)
  end)
end)
