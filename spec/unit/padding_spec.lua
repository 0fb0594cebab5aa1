-- padding_spec.lua: settings of padded_batch for each component; spec/golden/pipelines_spec.lua compares its batches with tf.data's.
require "spec.support.init"
local flow = require "flow"
local Dataset = flow.data.Dataset

describe("padded_batch", function()
  it("takes settings in the structure of elements", function()
    local named = Dataset.from_tensor_slices { a = flow.ones { 3, 2 }, b = flow.arange(3) }
    local one = named:padded_batch(3, { padded_shapes = { a = { 4 }, b = {} }, padding_values = { a = 7 } }):iter()()
    assert.same({ 1, 1, 7, 7 }, one.a[1]:totable())
    local plain = Dataset.range(3)
    for _, case in ipairs { { named, { padded_shapes = { a = { 4 } } }, "padded_shapes has no entry for b" },
      { named, { padding_values = { c = 1 } }, "padding_values has an entry c, elements have a table with a, b" },
      { plain, { padding_values = { c = 1 } }, "padding_values has a table with names where elements have a tensor" },
      { plain, { padding_values = "-" }, 'component 1 is int64, which is not padded with the string "-"' },
      { plain, { padded_shapes = "x" }, "padded_shapes is a list or a number, got" } } do
      local ok, problem = pcall(case[1].padded_batch, case[1], 2, case[2])
      assert.is_false(ok)
      assert.matches(case[3], problem, 1, true)
    end
  end)
end)
