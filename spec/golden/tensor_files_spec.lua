-- tensor_files_spec.lua: files that the Python package safetensors wrote (spec/golden/tensor_files.py), and ours with the same bytes.

local support = require "spec.support.init"
local flow = require "flow"

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"

local read = support.read

local DTYPES = { "float16", "float32", "float64", "int8", "uint8", "int32", "int64", "bool" }

describe("safetensors", function()
  local path
  before_each(function() path = support.path() end)
  after_each(function() os.remove(path) end)

  it("of the reference implementation are read, and written again with the same bytes", function()
    local tensors = flow.load_safetensors(here .. "safetensors/dtypes.safetensors")
    for _, dtype in ipairs(DTYPES) do
      assert.equal(dtype, tensors[dtype].dtype)
      local expected = flow.arange(6, { dtype = "float64" }):reshape { 2, 3 }:to(dtype):to("float64")
      assert.same(expected:totable(), tensors[dtype]:to("float64"):totable())
    end
    assert.equal(2.5, tensors.scalar:item())
    assert.same({ 0, 3 }, tensors.empty.shape)
    assert.same({ { 1, 1 } }, tensors["l\195\164yer/0"]:totable())
    flow.save_safetensors(path, tensors)
    assert.is_true(read(path) == read(here .. "safetensors/dtypes.safetensors"))
  end)

  it("carry metadata", function()
    local tensors, metadata = flow.load_safetensors(here .. "safetensors/metadata.safetensors")
    assert.same({ 0, 1, 2 }, tensors.x:totable())
    assert.same({ ["made by"] = 'a "test"\n#1' }, metadata)
    flow.save_safetensors(path, { x = tensors.x }, { metadata = { ["made by"] = "me" } })
    assert.same({ ["made by"] = "me" }, select(2, flow.load_safetensors(path)))
  end)

  it("hold a model's weights by name", function()
    local function new_model()
      local layers = flow.layers
      return flow.Sequential { layers.Input { 3 }, layers.Dense(2, { name = "d" }), layers.BatchNormalization { name = "b" } }
    end
    local safetensors, model, other = require "flow.saving.safetensors", new_model(), new_model()
    flow.save_safetensors(path, model)
    local tensors = flow.load_safetensors(path)
    assert.same(model:get_layer("d").kernel:totable(), tensors["d/kernel"]:totable())
    assert.equal(6, #safetensors.load_weights(other, path))
    assert.same(model:get_layer("d").kernel:totable(), other:get_layer("d").kernel:totable())
    other:set_weights(model:get_weights())
    model:save_weights(path .. ".safetensors")
    other:get_layer("d").kernel:assign(flow.zeros { 3, 2 })
    other:load_weights(path .. ".safetensors")
    os.remove(path .. ".safetensors")
    assert.same(model:get_layer("d").kernel:totable(), other:get_layer("d").kernel:totable())
    local wider = flow.Sequential { flow.layers.Input { 3 }, flow.layers.Dense(4, { name = "d" }) }
    assert.error_matches(function() safetensors.load_weights(wider, path) end, '"d/kernel" has shape {3, 2}')
    assert.same({}, safetensors.load_weights(wider, path, true))
    assert.error_matches(function() flow.save_safetensors(path, { x = 3 }) end, '"x" is the number 3, expected a tensor')
    assert.error_matches(function() flow.save_safetensors(path, flow.Sequential { flow.layers.Dense(1) }) end, "no variables yet")
  end)
end)
