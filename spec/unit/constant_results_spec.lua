-- constant_results_spec.lua: functions of data sets that were traced and gave numbers of Lua. # of a text is not an op, so such a function
-- is called with the texts. Conditions are checked wherever they are used.
local support = require "spec.support.init"
local flow = require "flow"
local Dataset = flow.data.Dataset
local message_of = support.message_of

local function values(ds)
  local list = {}
  for x in ds:iter() do list[#list + 1] = type(x) == "string" and x or x:item() end
  return list
end

local texts = { "a", "bb", "ccc", "d" }

describe("a function that computes with # of a text", function()
  local ds = Dataset.from_tensor_slices(texts)

  it("maps by its values", function()
    assert.same({ 1, 2, 3, 1 }, values(ds:map(function(x) return #x end)))
    assert.same({ true, false, false, true }, values(ds:map(function(x) return #x < 2 end)))
  end)

  it("filters and ends by its values", function()
    assert.same({ "a", "d" }, values(ds:filter(function(x) return #x < 2 end)))
    assert.same({ "a", "bb" }, values(ds:take_while(function(x) return #x < 3 end)))
    assert.same({ "a", "bb" }, values(ds:take_while(function(x) return flow.strings.length(x):lt(3) end)))
  end)

  it("stays in C where its numbers are constants", function()
    local constant = ds:map(function(x) return x, 7 end)
    local seen = {}
    for x, seven in constant:iter() do seen[#seen + 1] = x .. seven:item() end
    assert.same({ "a7", "bb7", "ccc7", "d7" }, seen)
    assert.equal("map", constant:stats()[1].name)
  end)
end)

describe("the condition of take_while", function()
  it("may look at elements whose sizes vary", function()
    local rows = Dataset.from_generator(function()
      local i = 0
      return function()
        i = i + 1
        return i < 5 and flow.ones { i, 2 * i } or nil
      end
    end, { output_signature = { { shape = { -1, -1 }, dtype = "float32" } } })
    local count = 0
    for _ in rows:take_while(function(x) return x:sum():lt(10) end):iter() do count = count + 1 end
    assert.equal(2, count)
  end)

  it("is one scalar of dtype bool", function()
    for _, f in ipairs { function(x) return x % 2 end, function() return 3 end, function(x) return x:gt(flow.tensor { 1, 2 }) end } do
      local message = message_of(function() Dataset.range(5):take_while(f) end)
      assert.truthy(message:find("one scalar of dtype bool is needed", 1, true), message)
    end
    local message = message_of(function() values(Dataset.from_tensor_slices(texts):take_while(function() return 3 end)) end)
    assert.truthy(message:find("take_while: its function gives true or false, got", 1, true), message)
  end)
end)

describe("what is known of elements", function()
  it("counts those that a file has, and leaves data sets out that are never taken", function()
    local folder = support.folder()
    Dataset.range(7):filter(function(x) return (x % 2):eq(0) end):save(folder)
    assert.equal(4, Dataset.load(folder):cardinality())
    local one = Dataset.sample_from_datasets({ Dataset.range(3), Dataset.range(10, 12) }, { weights = { 0, 1 } })
    assert.same({ 2, { 10, 11 } }, { one:cardinality(), values(one) })
    flow.io.rmtree(folder)
  end)

  it("lets a text be the first component of from_tensors", function()
    for name, x, y in Dataset.from_tensors { "n", flow.tensor { 1, 2 }, "z" }:iter() do
      assert.same({ "n", { 1, 2 }, "z" }, { name, x:totable(), y })
    end
  end)
end)
