-- numbers_of_tensors_spec.lua: tensors of rank 0 where numbers are taken, and functions of ds:map and ds:filter that ask for values.
local support = require "spec.support.init"
local flow = require "flow"
local Dataset, message_of = flow.data.Dataset, support.message_of

local function all(dataset)
  local list = {}
  for x in dataset:iter() do list[#list + 1] = x:totable() end
  return list
end

describe("a tensor of rank 0", function()
  it("is the number that a parameter takes, as NumPy's are in Python", function()
    assert.equal(3, Dataset.range(9):take(flow.tensor(3, { dtype = "int64" })):len())
    assert.same({ 0, 3, 6 }, all(Dataset.range(9):shard { num_shards = flow.tensor(3), index = flow.tensor(0, { dtype = "int32" }) }))
  end)

  it("is refused where its number does not fit, and tensors with axes are", function()
    local numbers = Dataset.range(9)
    for given, said in pairs { [flow.tensor(1.5)] = "{}", [flow.tensor { 3 }] = "{1}" } do
      local message = message_of(function() numbers:take(given) end)
      assert.truthy(message:find("count is a whole number, got a tensor float32 " .. said, 1, true), message)
    end
  end)
end)

describe("functions of map and filter that ask for values", function()
  it("are called with them", function()
    local numbers = Dataset.range(5)
    assert.same({ 0, -1, 2, -3, 4 }, all(numbers:map(function(x) return x:item() % 2 == 0 and x or -x end)))
    assert.same({ 3, 4 }, all(numbers:filter(function(x) return flow.tensor(x:item() > 2) end)))
    local double = flow.fn(function(x)
      if x:item() > 2 then return x * 2 end
      return x
    end)
    assert.same({ 0, 1, 2, 6, 8 }, all(numbers:map(double)))
    assert.same({ 1, 2, 3, 7, 9 }, all(numbers:map(function(x) return double(x) + 1 end)))
    assert.same({ 3, 4 }, all(numbers:filter(function(x) return double(x) ~= x and flow.tensor(double(x):item() > 4) end)))
    assert.truthy(message_of(function() double(flow.tensor(3)) end):find("has no value while f is traced", 1, true))
    local pictures = Dataset.from_tensor_slices { flow.arange(16):reshape { 1, 4, 4, 1 }, flow.tensor({ 2 }, { dtype = "int32" }) }
    local crops = pictures:map(function(x, side) return flow.image.crop_to_bounding_box(x, 1, side - 1, side, side) end)
    assert.same({ { { { 5 }, { 6 } }, { { 9 }, { 10 } } } }, all(crops))
  end)
end)
