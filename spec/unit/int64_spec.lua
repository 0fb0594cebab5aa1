-- 64-bit integers on every way between Lua and tensors: elements above 2^53 keep their bits and come back as int64_t.
local flow = require "flow"
local ffi = require "ffi"
local support = require "spec.support.init"

local BIG = 9007199254740993LL                -- 2^53 + 1, which no double holds
local LEAST, MOST = -2LL ^ 63, 9223372036854775807LL

local function is(expected, found)
  assert.equals(tostring(expected), tostring(found))
  assert.equals(type(expected), type(found))
end

local function all_are(expected, t)
  assert.equals("int64", t.dtype)
  local list = t:totable()
  assert.equals(#expected, #list)
  for i = 1, #expected do is(expected[i], list[i]) end
end

describe("64-bit integers", function()
  it("come from Lua values of every form", function()
    is(BIG, flow.tensor(BIG):item())
    is(-BIG, flow.tensor(-BIG):item())
    is(BIG, flow.tensor(9007199254740993ULL):item())
    all_are({ BIG, 1, LEAST, MOST }, flow.tensor { BIG, 1, LEAST, MOST })
    all_are({ 1, BIG }, flow.tensor { 1, BIG })
    is(BIG, flow.tensor({ { 1, 2 }, { 3, BIG } }):totable()[2][2])
    all_are({ 5, 7 }, flow.tensor { 5LL, 7ULL })
    all_are({ 1, BIG }, flow.tensor({ 1.5, BIG }, { dtype = "int64" }))
    assert.equals("float32", flow.tensor({ 0.5, BIG }).dtype)
    all_are({ BIG, 2 }, flow.tensor(ffi.new("int64_t[2]", BIG, 2)))
    all_are({ BIG, 2 }, flow.tensor(ffi.new("uint64_t[2]", 9007199254740993ULL, 2)))
    all_are({ BIG, BIG }, flow.full({ 2 }, BIG))
    all_are({ BIG, BIG }, flow.full_like(flow.zeros({ 2 }, { dtype = "int64" }), BIG))
    is(BIG, flow.Variable(BIG):item())
    all_are({ BIG, BIG + 1, BIG + 2 }, flow.arange(BIG, BIG + 3))
    all_are({ MOST, MOST - 5 }, flow.arange(MOST, MOST - 10, -5))
    all_are({ 2 ^ 53, BIG, BIG + 1, BIG + 2 }, flow.arange(2 ^ 53, 2 ^ 53 + 4, 1, { dtype = "int64" }))
    all_are({}, flow.arange(3LL, 3LL))
    all_are({ LEAST, -1, MOST - 1 }, flow.arange(LEAST, MOST, MOST))
  end)

  it("become numbers up to 2^53 and stay int64_t above, on both sides of 0", function()
    for _, sign in ipairs { 1, -1 } do
      is(sign * 2 ^ 53, flow.tensor(sign * 9007199254740992LL):item())
      is(sign * (2 ^ 53 - 1), flow.tensor(sign * 9007199254740991LL):item())
      is(sign * BIG, flow.tensor(sign * BIG):item())
    end
  end)

  it("are refused where a narrower dtype is asked for, and rounded to float64", function()
    for expected, make in pairs {
      ["flow.tensor: int32 holds whole numbers from -2147483648 to 2147483647, got 9007199254740993LL"] = function()
        flow.tensor({ BIG, -BIG }, { dtype = "int32" })
      end,
      ["flow.full: uint8 holds whole numbers from 0 to 255, got 9007199254740993LL"] = function()
        flow.full({ 2 }, BIG, { dtype = "uint8" })
      end,
    } do
      assert.is_truthy(support.message_of(make):find(expected, 1, true), expected)
    end
    assert.equals(2 ^ 53, flow.tensor(BIG, { dtype = "float64" }):item())
  end)

  it("above the largest int64 are refused where an int64 is made of them", function()
    local too_large = 9223372036854775808ULL
    for name, f in pairs {
      tensor = function() flow.tensor(too_large) end, list = function() flow.tensor { 1, too_large } end,
      full = function() flow.full({ 2 }, too_large) end, array = function() flow.tensor(ffi.new("uint64_t[1]", too_large)) end,
      operand = function() return flow.tensor { 1LL } + too_large end,
    } do
      assert.is_truthy(support.message_of(f):find("above 9223372036854775807, the largest int64", 1, true), name)
    end
  end)

  it("are read and written as elements", function()
    local t = flow.zeros({ 2, 3 }, { dtype = "int64" })
    t[{ 2, 1 }] = BIG
    t[1] = -BIG
    t[{ {}, { 3, 3 } }] = flow.tensor { { MOST }, { LEAST } }
    is(BIG, t[{ 2, 1 }]:item())
    is(-BIG, t[1][2]:item())
    all_are({ MOST, LEAST }, t[{ {}, 3 }])
  end)

  it("are operands that take the tensor's dtype, as whole numbers do", function()
    local t = flow.tensor { BIG, 1LL }
    all_are({ BIG + 2, 3 }, t + 2LL)
    all_are({ 2 * BIG, BIG + 1 }, t + BIG)
    all_are({ 0, 2 ^ 53 }, BIG - t)
    assert.same({ true, false }, t:eq(BIG):totable())
    assert.same({ true, false }, t:gt(9007199254740992LL):totable())
    assert.same({ false, true }, t:lt(BIG):totable())
    all_are({ BIG, 7 }, flow.where(flow.tensor { true, false }, t, 7))
    all_are({ BIG, 5 }, flow.maximum(t, 5LL))
    for dtype in pairs { float32 = 1, float16 = 1, int8 = 1, uint8 = 1, int32 = 1 } do
      assert.equals(dtype, (flow.zeros({ 1 }, { dtype = dtype }) + 5LL).dtype)
    end
    assert.equals("int64", (flow.zeros({ 1 }, { dtype = "int32" }) + BIG).dtype)
    assert.equals("int64", flow.add(1LL, 2LL).dtype)
  end)

  it("keep their bits through ops that move or choose", function()
    local t = flow.tensor { { 3LL, BIG, BIG - 1 }, { LEAST, LEAST + 1, LEAST } }
    all_are({ BIG, LEAST + 1 }, t:max(2))
    all_are({ 3, LEAST }, t:min(2))
    assert.same({ 2, 2 }, t:argmax(2):totable())
    assert.same({ 1, 1 }, t:argmin(2):totable())
    is(BIG, t:reshape(-1):take({ 2 }):totable()[1])
    all_are({ BIG, 1 }, flow.concat { flow.tensor { BIG }, flow.tensor { 1LL } })
    is(2 * BIG, flow.tensor({ BIG, BIG }):sum():item())
    is(-BIG, (-flow.tensor(BIG)):item())
    is(BIG, flow.tensor(-BIG):abs():item())
    is(BIG, t:transpose():totable()[2][1])
    is(BIG, flow.flip(t, 2):totable()[1][2])
    is(BIG, flow.pad(flow.tensor { 1LL }, 1, { constant_values = BIG }):totable()[1])
  end)

  it("keep their bits where they are put, and as sums of rows that share an index", function()
    local t, first = flow.tensor { BIG, LEAST, BIG + 2 }, flow.tensor({ { 1 }, { 3 }, { 2 } }, { dtype = "int32" })
    local zeros = flow.zeros({ 3 }, { dtype = "int64" })
    for _, put in ipairs { flow.scatter(first, t, { 3 }), flow.scatter_update(zeros, first, t), flow.scatter_update(zeros, first, t, "add"),
                           flow.fn(function(a) return flow.scatter(first, a, { 3 }) end)(t) } do
      all_are({ BIG, BIG + 2, LEAST }, put)
    end
    local ids = flow.tensor({ 0, 1, 0 }, { dtype = "int32" })
    all_are({ 2 * BIG + 2, LEAST, 0 }, flow.segment_sum(t, ids, { num_segments = 3 }))
    all_are({ BIG + 2, LEAST }, flow.segment_max(t, ids, { num_segments = 2 }))
    all_are({ BIG, LEAST }, flow.segment_min(t, ids, { num_segments = 2 }))
    all_are({ 2 * BIG + 2, LEAST }, flow.bincount(ids, { weights = t }))
    all_are({ 0, 5 }, flow.segment_sum(flow.tensor { LEAST, LEAST, 5LL }, flow.tensor({ 0, 0, 1 }, { dtype = "int32" })))      -- wraps
    local values, numbers, sums = {}, {}, { 0LL, 0LL, 0LL }
    for i = 1, 999 do
      values[i], numbers[i] = (i * 7919LL) * 104729LL * 15485863LL * (i % 2 == 0 and 31 or -31), i % 3
      sums[i % 3 + 1] = sums[i % 3 + 1] + values[i]
    end
    all_are(sums, flow.segment_sum(flow.tensor(values), flow.tensor(numbers, { dtype = "int32" })))
    local rows = flow.segment_sum(flow.tensor { { BIG, 1LL }, { BIG, -3LL } }, flow.tensor({ 0, 0 }, { dtype = "int32" })):totable()[1]
    is(2 * BIG, rows[1])
    is(-2, rows[2])
  end)

  it("are constants of saved models", function()
    local input, path = flow.Input({ 2 }, { dtype = "int64" }), support.file("constants.keras", "")
    local model = flow.Model { inputs = input, outputs = {
      input + BIG, flow.maximum(input, flow.tensor { { LEAST, BIG + 2 } }), input * 3 } }
    model:save(path)
    local found = flow.load_model(path)(flow.zeros({ 1, 2 }, { dtype = "int64" }))
    all_are({ BIG, BIG }, found[1]:reshape(-1))
    all_are({ 0, BIG + 2 }, found[2]:reshape(-1))
    all_are({ 0, 0 }, found[3]:reshape(-1))
  end)

  it("are tokens of IntegerLookup, learnt, given, of a file, and saved", function()
    local layers, asked = flow.layers, flow.tensor { BIG, BIG - 1, LEAST, 4LL }
    local function tokens_are(expected, layer)
      local list = layer:get_vocabulary(false)
      assert.equals(#expected, #list)
      for i = 1, #expected do is(expected[i], list[i]) end
    end
    local learnt = layers.IntegerLookup()
    learnt:adapt(flow.data.Dataset.from_tensor_slices(flow.tensor { LEAST, BIG, 4LL, BIG, BIG, LEAST }):batch(2))
    tokens_are({ BIG, LEAST, 4 }, learnt)
    local given = layers.IntegerLookup { vocabulary = flow.tensor { BIG, LEAST, 4LL } }
    local path_of_tokens = support.file("tokens.txt", tostring(BIG):sub(1, -3) .. "\n-9223372036854775808\n4\n")
    local of_file = layers.IntegerLookup { vocabulary = path_of_tokens }
    for _, layer in ipairs { learnt, given, of_file, layers.IntegerLookup { vocabulary = { BIG, LEAST, 4LL } } } do
      tokens_are({ BIG, LEAST, 4 }, layer)
      assert.same({ 1, 0, 2, 3 }, layer(asked):totable())
    end
    for _, layer in ipairs { learnt, given } do
      local input, path = flow.Input({ 1 }, { dtype = "int64" }), support.file("lookup.keras", "")
      flow.Model { inputs = input, outputs = layer(input) }:save(path)
      assert.same({ 1, 0, 2, 3 }, flow.load_model(path)(asked:expand_dims(-1)):reshape(-1):totable())
    end
    all_are({ BIG, LEAST }, layers.IntegerLookup { vocabulary = { BIG, LEAST }, invert = true }(flow.tensor({ 1, 2 }, { dtype = "int32" })))
    local _, twice = pcall(layers.IntegerLookup, { vocabulary = { BIG, BIG } })
    assert.truthy(twice:find("twice", 1, true), twice)
    local _, large = pcall(layers.IntegerLookup, { vocabulary = support.file("tokens.txt", "9223372036854775808\n") })
    assert.truthy(large:find("is not a whole number", 1, true), large)
    local _, folder = pcall(layers.IntegerLookup, { vocabulary = support.folder() })
    assert.truthy(folder:find("cannot be read: it is not a file", 1, true), folder)
  end)

  it("are sorted out by top_k", function()
    local values, positions = flow.top_k(flow.tensor { { 3LL, BIG, BIG - 1, BIG }, { LEAST, LEAST + 1, LEAST, LEAST } }, 3)
    local list = values:totable()
    is(BIG, list[1][1])
    is(BIG, list[1][2])
    is(2 ^ 53, list[1][3])
    is(LEAST + 1, list[2][1])
    is(LEAST, list[2][2])
    assert.same({ { 2, 4, 3 }, { 2, 1, 3 } }, positions:totable())
  end)

  it("are assigned to variables", function()
    local v = flow.Variable(flow.zeros({ 2 }, { dtype = "int64" }))
    v:assign(flow.tensor { BIG, -1LL })
    all_are({ BIG, -1 }, v:value())
    v:assign(BIG)
    all_are({ BIG, BIG }, v:value())
    v:assign_add(BIG)
    all_are({ 2 * BIG, 2 * BIG }, v:value())
    v:assign_sub(1LL)
    all_are({ 2 * BIG - 1, 2 * BIG - 1 }, v:value())
  end)

  it("stay constants of traced functions", function()
    local f = flow.fn(function(x) return x + BIG end)
    all_are({ BIG + 1 }, f(flow.tensor { 1LL }))
  end)

  it("are printed in full", function()
    assert.is_truthy(tostring(flow.tensor { BIG, LEAST }):find("9007199254740993 -9223372036854775808", 1, true))
  end)

  it("are elements of data sets", function()
    local function elements(ds)
      local list = {}
      for x in ds:iter() do list[#list + 1] = x end
      return list
    end
    local Dataset = flow.data.Dataset
    for _, ds in ipairs { Dataset.range(BIG, BIG + 2), Dataset.from_tensor_slices(flow.tensor { BIG, BIG + 1 }),
                          Dataset.from_generator(function() return coroutine.wrap(function()
                            coroutine.yield(BIG)
                            coroutine.yield(BIG + 1)
                          end) end) } do
      local list = elements(ds)
      assert.equals(2, #list)
      is(BIG, list[1]:item())
      is(BIG + 1, list[2]:item())
    end
    local whole = elements(Dataset.range(2 ^ 53, 2 ^ 53 + 2))
    is(2 ^ 53, whole[1]:item())
    is(BIG, whole[2]:item())
    local mapped = elements(Dataset.range(BIG, BIG + 4):batch(2):map(function(x) return x * 2 end))
    all_are({ 2 * BIG + 4, 2 * BIG + 6 }, mapped[2])
  end)

  it("survive files", function()
    local path = support.path()
    flow.save_npy(path, flow.tensor { BIG, LEAST })
    all_are({ BIG, LEAST }, flow.load_npy(path))
    os.remove(path)
  end)

  it("are not made of fractions by Dataset.range, which counts in floats if it is told to", function()
    local Dataset = flow.data.Dataset
    for _, numbers in ipairs { { 2.5 }, { 0.5, 3 }, { 0, 3, 0.7 }, { 1 / 0 } } do
      local message = support.message_of(function() Dataset.range(unpack(numbers)) end)
      assert.truthy(message:find("range: its numbers are int64, got the number", 1, true), message)
    end
    local list = {}
    for x in Dataset.range(0, 1.25, 0.5, { dtype = "float32" }):iter() do list[#list + 1] = x:item() end
    assert.same({ 0, 0.5, 1 }, list)
  end)

  it("are moved to and from a GPU", function()
    if #flow.config.list_devices("gpu") == 0 then pending("there is no GPU") end
    local t = flow.full({ 2 }, BIG, { device = "gpu:0" })
    all_are({ BIG, BIG }, t)
    t[2] = -BIG
    is(-BIG, t[2]:item())
    all_are({ BIG + 1, -2 ^ 53 }, t + 1LL)
  end)
end)
