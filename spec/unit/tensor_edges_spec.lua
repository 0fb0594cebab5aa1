-- tensor_edges_spec.lua: what tensors, strings and random numbers do with arguments that are nearly right: holes, huge numbers, depths.
local support = require "spec.support.init"
local flow = require "flow"

local function refuses(pattern, f)
  local text = support.message_of(f)
  assert.truthy(text:find(pattern, 1, true), text)
end

local function nested(depth)
  local value = "a"
  for _ = 1, depth do value = { value } end
  return value
end

describe("shapes and positions", function()
  local x = flow.tensor { 1, 2, 3, 4 }

  it("are numbers that an int64 holds exactly", function()
    refuses("dimension 1 of the shape is the number 1e+300, expected a whole number", function() x:reshape(1e300) end)
    refuses("dimension 1 of the shape is the number 1e+300, expected a whole number", function() x:broadcast_to(1e300, 4) end)
    refuses("a position is a whole number from 1, got the number inf", function() return x[{ { 1, math.huge } }] end)
    refuses("a position is a whole number from 1, got the number inf", function() return x[{ { 1, 4, math.huge } }] end)
    refuses("a width is a whole number from 0", function() flow.pad(flow.ones { 2, 2 }, { { 0, 0 }, { 0, 1e19 } }) end)
    refuses("out of memory", function() flow.linspace(0, 1, 1e15) end)
  end)

  it("may be tensors of one value, such as the product of a shape's sizes", function()
    local sizes = flow.ones { 2, 3 }.shape
    local y = flow.ones(sizes)
    assert.same({ 6, 1 }, { unpack(y:reshape(flow.prod(sizes), 1).shape) })
    local wanted = { flow.prod(sizes), -1 }
    assert.same({ 6, 1 }, { unpack(flow.reshape(y, wanted).shape) })
    assert.is_true(flow.is_tensor(wanted[1]))
    assert.same({ 4, 3 }, { unpack(flow.broadcast_to(flow.ones { 3 }, { flow.tensor(4), 3 }).shape) })
    refuses("dimension 1 of the shape is a tensor float32 {2}", function() y:reshape { flow.ones { 2 }, 3 } end)
    refuses("is a tensor, which has no value while the function is traced: x.shape and flow.shape(x) have", function()
      flow.fn(function(t) return t:reshape { t:sum(), 1 } end)(y)
    end)
  end)

  it("have no holes", function()
    refuses("entry 4 of the list of positions is nil", function() return x[{ false, false, false, nil, 1 }] end)
    refuses("cuts: entry 2 of the list is nil", function() flow.split(x, { 1, nil, 3 }) end)
  end)
end)

describe("tapes", function()
  it("keep no tensor that was watched while one of their recordings ran", function()
    local tape = flow.GradientTape()
    for _ = 1, 3 do
      local z = flow.ones { 2 }
      local y = tape:record(function()
        tape:watch(z)
        return (z * z):sum()
      end)
      assert.same({ 2, 2 }, tape:gradient(y, z):totable())
    end
    assert.equal(0, #tape.watched)
  end)

  it("say that rows are needed for a jacobian by rows", function()
    local x, tape = flow.tensor { 1, 2 }, flow.GradientTape()
    tape:watch(x)
    local y = tape:record(function() return (x * x):sum() end)
    refuses("batch_jacobian(): the first axis", function() tape:batch_jacobian(y, x) end)
    refuses("batch_jacobian(): this tape has recorded nothing", function() flow.GradientTape():batch_jacobian(x, x) end)
  end)
end)

describe("seeds", function()
  it("that are large give different ones, too", function()
    local generator, seen = flow.random.SeedGenerator(2 ^ 53 - 1), {}
    for _ = 1, 100 do
      local seed = generator:next()
      assert.is_nil(seen[seed])
      assert.is_true(seed >= 0 and seed < 2 ^ 53 and seed % 1 == 0)
      seen[seed] = true
    end
    -- (2^53 - 1) * 1000003 + 7919 modulo 2^53, by Python
    assert.equal(9007199253748908, flow.random.SeedGenerator(2 ^ 53 - 1):next())
    assert.equal(5 * 1000003 + 7919, flow.random.SeedGenerator(5):next())
    local few = flow.random.binomial({ 1000 }, 10, 0.5, { seed = 2 ^ 53 - 1 })      -- with one seed for all draws: 0 or 10
    assert.near(5, few:mean():item(), 0.3)
    assert.near(1.58, few:std():item(), 0.3)
  end)

  it("of whole numbers give whole numbers", function()
    refuses("dtype is one of whole numbers", function() flow.random.randint({ 2 }, 0, 5, { dtype = "float32" }) end)
    refuses("one of them is infinite", function() flow.random.binomial({ 2 }, math.huge, 0.5) end)
  end)
end)

describe("strings", function()
  local names = flow.tensor { "a", "b", "c", "d" }

  it("have as many axes as tensors", function()
    assert.equal(8, #flow.tensor(nested(8)).shape)
    assert.equal(7, #flow.layers.StringLookup { vocabulary = { "a" } }(flow.tensor(nested(7))).shape)
    for _, depth in ipairs { 9, 40, 3000 } do      -- beyond, sizes were written after the array that the library reads
      local wanted = depth < 800 and ("a tensor has at most 8 dimensions, got %d"):format(depth) or "nested more than 800 deep"
      refuses(wanted, function() flow.tensor(nested(depth)) end)
      refuses(wanted, function() flow.layers.Hashing(3)(nested(depth)) end)
    end
  end)

  it("move as numbers do", function()
    assert.same({ 1, 4 }, names:expand_dims().shape)
    assert.same({ 4 }, names:reshape { 1, 4, 1 }:squeeze().shape)
    assert.same({ 4 }, names:reshape { 1, 4, 1 }:squeeze { 1, 3 }.shape)
    refuses("expand_dims: axis 7 is out of range", function() names:expand_dims(7) end)
    refuses("squeeze: axis 9 is out of range", function() names:squeeze(9) end)
    refuses("squeeze: an axis is a whole number", function() names:squeeze "a" end)
    for _, shape in ipairs { { -2, -2 }, { "a" }, { 2.5, 1.6 } } do
      refuses("reshape: dimension 1 of the shape is", function() names:reshape(shape) end)
    end
    refuses("dimensions 1 and 2 are both -1", function() names:reshape { -1, -1 } end)
    refuses("indexed by positions and ranges", function() return names[{ 1.5 }] end)
  end)

  it("are joined along an axis of no elements", function()
    local none = flow.strings.split { "", "" }
    assert.same({ 2, 0 }, none.shape)
    assert.same({ "", "" }, flow.strings.reduce_join(none, 2):totable())
  end)

  it("become whole numbers where they spell them", function()
    assert.same({ -12, 1000 }, flow.strings.to_number({ "-12", "1e3" }, "int32"):totable())
    refuses('"1.5" is not a whole number', function() flow.strings.to_number({ "1.5" }, "int32") end)
    refuses("precision is at most 99", function() flow.strings.as_string({ 1.5 }, 200) end)
  end)

  it("are matched by a regular expression however long they are", function()
    assert.is_false(flow.strings.regex_full_match(("ab"):rep(2e5), "(ab){2,}c"):item())
    assert.is_false(flow.strings.regex_full_match("abc", "(ab){2,}c"):item())
    assert.is_true(flow.strings.regex_full_match("ababc", "(ab){2,}c"):item())
  end)
end)
