-- learnt_shapes_spec.lua: stages whose functions give data sets or values learn from them which sizes of their elements are fixed: those
-- that do not depend on sizes that vary. What the first element happens to have is not taken for all, and what is fixed stays known.
require "spec.support.init"
local flow = require "flow"
local Dataset = flow.data.Dataset

local function shapes(ds)
  local list = {}
  for i, spec in ipairs(ds._specs) do list[i] = spec.shape end
  return list
end

local function sizes(ds)
  local list = {}
  for x in ds:iter() do list[#list + 1] = table.concat(x.shape, "x") end
  return table.concat(list, " ")
end

-- Ones of these numbers of rows, of 5 columns.
local function sequences(...)
  local lengths = { ... }
  return Dataset.from_generator(function()
    local i = 0
    return function()
      i = i + 1
      return lengths[i] and flow.ones { lengths[i], 5 }
    end
  end, { output_signature = { { shape = { -1, 5 }, dtype = "float32" } } })
end

describe("the sizes of elements that a function makes", function()
  it("may differ between windows", function()
    local batches = Dataset.range(8):batch(3):window(1):flat_map(function(window) return window:batch(1) end)
    assert.same({ { -1, -1 } }, shapes(batches))
    assert.equal("1x3 1x3 1x2", sizes(batches))
  end)

  it("may differ between the data sets of flat_map and interleave", function()
    local columns = sequences(2, 2, 3):map(function(x) return x:transpose() end):flat_map(function(x)
      return Dataset.from_tensor_slices { x }
    end)
    assert.same({ { -1 } }, shapes(columns))
    assert.equal("2 2 2 2 2 2 2 2 2 2 3 3 3 3 3", sizes(columns))
    local rows = sequences(1, 1, 4):interleave(function(x) return Dataset.from_tensor_slices { x } end, { cycle_length = 2 })
    assert.same({ { 5 } }, shapes(rows))
  end)

  it("stay known in groups, buckets and scans", function()
    local data = sequences(1, 2, 3, 1)
    local function length(x) return x.shape[1] end
    assert.same({ { -1, -1, 5 } }, shapes(data:bucket_by_sequence_length(length, { 3 }, { 2, 2 })))
    assert.same({ { -1, -1, 5 } }, shapes(data:group_by_window(function(x) return length(x) % 2 end, function(_, group)
      return group:padded_batch(2)
    end, { window_size = 2 })))
    local sums = data:scan(flow.tensor(0), function(sum, x) return sum + x:sum(), x, x:sum() end)
    assert.same({ { -1, 5 }, {} }, shapes(sums))
    assert.equal("1x5 2x5 3x5 1x5", sizes(sums))
  end)

  it("vary if the function does not take zeros", function()
    local data = sequences(2, 3):scan(flow.tensor(0), function(sum, x)
      if x:sum():item() == 0 then error "zeros" end
      return sum, x
    end)
    assert.same({ { -1, -1 } }, shapes(data))
    assert.equal("2x5 3x5", sizes(data))
  end)

  it("are the function's where there are no elements", function()
    local none = Dataset.range(3):take(0)
    assert.same({ { -1 } }, shapes(none:group_by_window(function(x) return x end, function(_, group) return group:batch(2) end,
      { window_size = 2 })))
    local pairs_of = none:scan(flow.tensor(0, { dtype = "int64" }), function(sum, x) return sum + x, sum, x:to "float32" end)
    assert.equal("Dataset (int64 {}, float32 {})", tostring(pairs_of))
  end)
end)
