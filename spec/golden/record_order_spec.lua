-- record_order_spec.lua: TFRecordDataset reads several files at the same time in TensorFlow's order, from the start and from every
-- position in the middle.
local support = require "spec.support.init"
local flow = require "flow"

local function files_of(lengths)
  local paths = {}
  for i, length in ipairs(lengths) do
    paths[i] = support.file("order" .. i, "")
    local writer = flow.data.TFRecordWriter(paths[i])
    for k = 1, length do writer:write(("%d.%d"):format(i - 1, k - 1)) end
    writer:close()
  end
  return paths
end

local function rest(iterator)
  local texts = {}
  for text in iterator do texts[#texts + 1] = text end
  return texts
end

describe("records are read in TensorFlow's order:", function()
  for _, case in ipairs(require "spec.golden.record_order") do
    it(("%d files, %d at a time"):format(#case.lengths, case.reads), function()
      local ds = flow.data.TFRecordDataset(files_of(case.lengths), { num_parallel_reads = case.reads })
      local expected = rest(ds:iter())
      assert.equal(case.order, table.concat(expected, " "))
      for at = 0, #expected do
        local first = ds:iter()
        for _ = 1, at do first() end
        local position = first:save()
        first:close()
        assert.same({ unpack(expected, at + 1) }, rest(ds:iter():restore(position)))
      end
    end)
  end
end)
