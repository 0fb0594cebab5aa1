-- operation_files_spec.lua: operations of keras.ops in a model that Keras saved (operation_files.py) give what they give there, also when
-- the model is saved again, as operations of Keras; those that are not known are named.
local support = require "spec.support.init"
local flow = require "flow"

local folder = debug.getinfo(1, "S").source:match("^@(.*)operation_files_spec%.lua$")
local FILE = folder .. "keras/operation_files"

local values = {}
for i, name in ipairs { "x", "y", "image", "query", "ids", "rows" } do values[i] = flow.load_npz(FILE .. ".npz", name) end

-- The names of the stored results, in the order of the model's outputs.
local function names_of_results()
  local names = {}
  for name in pairs(flow.load_npz(FILE .. ".npz")) do names[#names + 1] = name:find "^out " and name or nil end
  table.sort(names)
  return names
end

local function assert_near(expected, found, what)
  assert.same(expected.shape, found.shape, what)
  assert.equal(expected.dtype, found.dtype, what)
  local a, b = expected:to "float64", found:to "float64"
  assert.is_true((a - b):abs():max():item() <= 2e-5 * math.max(1, a:abs():max():item()), what)
end

describe("operations of keras.ops", function()
  local names, path = names_of_results(), support.file("again.keras", "")
  local model = flow.load_model(FILE .. ".keras")
  local found = model(values)
  model:save(path)
  local again = flow.load_model(path)
  local found_again = again(values)
  for i, name in ipairs(names) do
    it("in files of Keras: " .. name:sub(9), function()
      assert_near(flow.load_npz(FILE .. ".npz", name), found[i], name)
      assert.same(found[i]:totable(), found_again[i]:totable())
    end)
  end

  it("stay Keras' own when the model is saved again", function()
    assert.equal(73, #names)
    assert.is_nil(again:to_json():find("flowlua.ops", 1, true))
  end)

  it("are what files have of flow's functions", function()
    local inputs = {}
    for i, value in ipairs(values) do
      inputs[i] = flow.Input({ unpack(value.shape, 2) }, { dtype = value.dtype, batch_size = value.shape[1] })
    end
    local own = flow.Model { inputs = inputs, outputs = dofile(folder .. "operation_files.lua")(unpack(inputs)) }
    assert.is_nil(own:to_json():find("flowlua.ops", 1, true))
    own:save(path)
    local expected, read = own(values), flow.load_model(path)(values)
    for i, one in ipairs(expected) do assert.same(one:totable(), read[i]:totable()) end
  end)

  it("that are not known are named, with what to write instead", function()
    local text = model:to_json()
    for class, words in pairs { Eig = "flow.eigh", Unique = "flow.unique computes it of what the model predicts",
                                Scan = "make the model in Lua, with flow.scan" } do
      local message = support.message_of(function() flow.models.model_from_json((text:gsub('"Vdot"', '"' .. class .. '"'))) end)
      assert.truthy(message:find("it has the operation " .. class .. " of keras.ops", 1, true), message)
      assert.truthy(message:find(words, 1, true), message)
    end
  end)

  it("take as many operands as there are, and no others", function()
    local text = model:to_json():gsub('"Vdot"', '"Where"')
    local message = support.message_of(function() flow.models.model_from_json(text) end)
    assert.truthy(message:find("Where: a call with 2 operands is not supported, it takes 3", 1, true), message)
  end)
end)
