-- foreign_nans_spec.lua: NaNs of any bits, as files, memory of others and GPUs bring them, come to Lua as the number NaN. LuaJIT keeps its
-- objects in NaNs: one that came as it is would be taken for a nil, a string or a table at an address that the file chose.
local flow = require "flow"
local support = require "spec.support.init"

local CASES = tonumber(os.getenv("FLOW_CASES")) or 200

-- A tensor of `count` NaNs of that dtype with made-up bits, of both signs.
local function nans(dtype, count, seed)
  local state = seed
  local function random()      -- Park and Miller's, whose low bits are good enough here
    state = state * 16807 % 2147483647
    return state
  end
  local bytes = { float16 = 2, bfloat16 = 2, float32 = 4, float64 = 8 }
  local exponent = { float16 = 0x7c00, bfloat16 = 0x7f80, float32 = 0x7f80, float64 = 0x7ff0 }      -- of the highest 16 bits
  local mantissa = { float16 = 0x3ff, bfloat16 = 0x7f, float32 = 0x7f, float64 = 0xf }
  local n = bytes[dtype]
  local text = {}
  for i = 1, count do
    local high = exponent[dtype] + (random() % 2) * 0x8000 + bit.band(random(), mantissa[dtype])
    if i % 3 == 0 then high = bit.bor(high, mantissa[dtype]) end
    if bit.band(high, mantissa[dtype]) == 0 then high = high + 1 end
    local parts = { string.char(high % 256, math.floor(high / 256)) }
    for k = 2, n / 2 do table.insert(parts, 1, i % 3 == 0 and "\255\255" or string.char(random() % 256, random() % 256)) end
    text[i] = table.concat(parts)
  end
  return flow.frombuffer(table.concat(text), { count }, dtype)
end

local function is_nan(value)
  assert.equal("number", type(value))
  assert.is_true(value ~= value)
end

describe("a NaN of any bits", function()
  for i, dtype in ipairs { "float16", "bfloat16", "float32", "float64" } do
    it("comes to Lua as a number from a tensor of " .. dtype, function()
      local t = nans(dtype, CASES, i)
      for _, value in ipairs(t:totable()) do is_nan(value) end
      assert.equal(CASES, #t:totable())
      for k = 1, CASES do is_nan(t[k]:item()) end
      for _, result in ipairs { t:sum(), -t:sum(), (-t):sum(), t:abs():sum(), t:mean(), t:to("float64"):sum(), t:to("float32"):sum() } do
        is_nan(result:item())
      end
      assert.truthy(tostring(t):find("nan", 1, true))
    end)

    it("comes to Lua as a number from a variable, a loss and metrics of " .. dtype, function()
      local t = nans(dtype, 12, 10 + i)
      for k = 1, 12 do is_nan(flow.Variable(t[k]:to("float32")):value():item()) end
      local model = flow.Sequential { flow.Input { 3 }, flow.layers.Dense(1) }
      model:compile { optimizer = "sgd", loss = "mse", metrics = { "mae" } }
      local x = t:reshape { 4, 3 }
      local history = model:fit(x, flow.zeros { 4, 1 }, { epochs = 2, verbose = 0, batch_size = 3 })
      for _, values in pairs(history.history) do for _, value in ipairs(values) do is_nan(value) end end
      for _, value in pairs(model:evaluate(x, flow.zeros { 4, 1 }, { verbose = 0, return_dict = true })) do is_nan(value) end
      for _, row in ipairs(model:predict(x, { verbose = 0 }):totable()) do is_nan(row[1]) end
    end)
  end

  it("is read from files", function()
    for i, dtype in ipairs { "float16", "float32", "float64" } do
      local path = support.file("nans.npy", "")
      flow.save_npy(path, nans(dtype, 20, 20 + i))
      for _, value in ipairs(flow.load_npy(path):totable()) do is_nan(value) end
    end
  end)

  it("reaches what computes in Lua", function()
    local t = nans("float64", 9, 31):reshape { 3, 3 }
    local batch = flow.stack({ t, flow.eye(3):to("float64") })
    for _, name in ipairs { "eigh", "svd" } do
      local results = { flow.keras.ops[name](batch) }
      assert.is_true(#results > 0)
      for _, result in ipairs(results) do
        is_nan(result[1]:sum():item())
        assert.equal(0, (result[2]:sum() - result[2]:sum()):item())      -- the matrix beside it is what it was
      end
    end
    local counts = flow.math.confusion_matrix({ 0, 1, 1 }, { 0, 1, 0 }, { weights = t[1], dtype = "float64" }):totable()
    is_nan(counts[1][1])
  end)
end)
