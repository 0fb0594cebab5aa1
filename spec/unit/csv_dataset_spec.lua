-- csv_dataset_spec.lua: flow.data.experimental.CsvDataset gives the records that tf.data's gives.
local support = require "spec.support.init"
local flow = require "flow"

local CsvDataset, message_of = flow.data.experimental.CsvDataset, support.message_of
local function has(text, part) assert.truthy(tostring(text):find(part, 1, true), tostring(text) .. "\nlacks: " .. part) end

describe("CsvDataset", function()
  local first = support.file("first.csv", 'a,b,c\n1,2.5,"x, y"\n,,\n-3,1e2,z\n')
  local second = support.file("second.csv", "a,b,c\n4,,w\n")

  it("reads files one after the other, with what stands for empty fields", function()
    local found = {}
    local defaults = { flow.tensor({ 7 }, { dtype = "int32" }), 0.5, "none" }
    for a, b, c in CsvDataset({ first, second }, defaults, { header = true }):iter() do
      assert.same({ "int32", "float32" }, { a.dtype, b.dtype })
      found[#found + 1] = ("%d %g %s"):format(a:item(), b:item(), c)
    end
    -- of tf.data.experimental.CsvDataset(paths, [tf.constant([7], tf.int32), tf.constant([0.5]), "none"], header=True)
    assert.same({ "1 2.5 x, y", "7 0.5 none", "-3 100 z", "4 0.5 w" }, found)
  end)

  it("takes some columns, counted from 1", function()
    local texts = {}
    for c in CsvDataset(second, { "string" }, { select_cols = { 3 } }):iter() do texts[#texts + 1] = c end
    assert.same({ "c", "w" }, texts)
    for a, c in CsvDataset(second, { "int64", "string" }, { header = true, exclude_cols = { 2 } }):iter() do
      assert.equal("int64", a.dtype)
      assert.equal("4 w", ("%d %s"):format(tonumber(a:item()), c))
    end
  end)

  it("says what does not fit", function()
    local function message(...)
      local arguments = { ... }
      return message_of(function() CsvDataset(unpack(arguments)) end)
    end
    has(message(first, { "int64" }, { header = true, select_cols = { 1 } }), "field 1 of record 2 is empty, and has no default")
    has(message(first, { "string" }, { header = true, select_cols = { 5 } }), "has 3 columns, select_cols names the number 5")
    has(message(first, { 0, 0, "", 1 }, { header = true }), "has 3 columns, record_defaults 4 entries")
    has(message(second, { 0, 0, 0 }, { header = true }), '"w" is not a number')
    has(message(second, { 0 }, { select_cols = { 1 }, exclude_cols = { 2 } }), "not both")
  end)
end)
