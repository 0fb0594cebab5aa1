-- operation_forms_spec.lua: whatever of flow can be called on symbolic tensors can be saved and comes back: each public function is tried
-- with several kinds of arguments, and what makes a model is written, read and compared.
local flow = require "flow"
local native = require "flow.ffi"
local names_of = require "flow.reference.names"
local signature = require "flow.signature"
local symbolic = require "flow.layers.symbolic"
local support = require "spec.support.init"

local input = flow.Input { 4, 4 }
local x = flow.random.uniform({ 4, 4, 4 }, { minval = 0.1, maxval = 0.9, seed = 1 })      -- as many rows as columns

-- Arguments after the function: a is the symbolic tensor.
local WAYS = {
  function(f, a) return f(a) end, function(f, a) return f(a, a) end, function(f, a) return f(a, a, a) end,
  function(f, a) return f(a, 2) end, function(f, a) return f(a, 2, 3) end, function(f, a) return f(a, 1, 2) end,
  function(f, a) return f(a, -1) end, function(f, a) return f(a, 0.5, 0.5) end, function(f, a) return f(a, { 2, 3 }) end,
  function(f, a) return f(a, a, 2) end, function(f, a) return f { a, a } end, function(f, a) return f({ a, a }, 2) end,
  function(f, a) return f("bij,bjk->bik", a, a) end, function(f, a) return f(a, flow.tensor { 1, 2, 3, 4 }) end,
  function(f, a) return f(a, { axis = 2 }) end, function(f, a) return f(a, 2, { dtype = "float32" }) end,
}

-- Public functions, those whose files are loaded later among them, in order.
local function functions()
  local found, list = {}, {}
  for name in pairs(native.late_methods) do found[name] = true end
  for name in pairs(names_of.of(flow)) do found[name] = true end
  for name in pairs(found) do
    local ok, f = pcall(function() return flow[name] end)
    if ok and type(f) == "function" and signature.is_callable(f) then list[#list + 1] = name end
  end
  table.sort(list)
  return list
end

local function listed(result) return flow.is_tensor(result) and { result } or result end

-- What is wrong with a model that was saved and read, nil if nothing is.
local function difference(model)
  local ok, expected = pcall(function() return listed(model:predict_on_batch(x)) end)
  if not ok then return nil end      -- it does not run: another spec's matter
  local path = support.file("form.keras", "")
  local saved, problem = pcall(model.save, model, path)
  if not saved then return problem end
  local read, found = pcall(function() return listed(flow.load_model(path):predict_on_batch(x)) end)
  if not read then return found end
  for i, one in ipairs(expected) do
    local same = one.dtype == found[i].dtype and table.concat(one.shape, ",") == table.concat(found[i].shape, ",")
    local a, b = one:to "float64", found[i]:to "float64"
    if not same or not flow.logical_or(a:eq(b), flow.logical_and(a:ne(a), b:ne(b))):all():item() then return "it gives something else" end
  end
end

describe("functions of flow on symbolic tensors", function()
  it("are in files whatever their arguments", function()
    local problems, tried = {}, {}
    for _, name in ipairs(functions()) do
      for i, way in ipairs(WAYS) do
        local ok, outputs = pcall(way, flow[name], input)
        if ok and type(outputs) == "table" and (symbolic.is(outputs) or symbolic.any(outputs)) then
          local model = flow.Model { inputs = input, outputs = outputs }
          local problem = difference(model)
          tried[name] = true
          if problem then problems[#problems + 1] = ("%s, way %d: %s"):format(name, i, problem) end
        end
      end
    end
    local count = 0
    for _ in pairs(tried) do count = count + 1 end
    assert.equal("", table.concat(problems, "\n"))
    assert.is_true(count > 230, count)
  end)

  it("are called again with the same constants, options and positions", function()
    local outputs = {
      flow.argsort(input, 2), flow.relu(input, { max_value = 0.5 }), input:matmul(input, { transpose_b = true }),
      flow.clip(input, flow.tensor { 0.2, 0.3, 0.2, 0.1 }, 0.5), flow.roll(input, { 1, -1 }, { 2, 3 }), flow.full_like(input, math.huge),
      flow.where(input:gt(0.5), input, 0), (flow.top_k(input, 2)), flow.exponential(input), flow.swish(input),
      flow.argmax(input, { axis = 2 }), flow.nan_to_num(input / 0, { posinf = 7 }),
    }
    local model, path = flow.Model { inputs = input, outputs = outputs }, support.file("forms.keras", "")
    model:save(path)
    local again = flow.load_model(path)
    for i, expected in ipairs(model:predict(x)) do assert.same(expected:totable(), again:predict(x)[i]:totable(), "output " .. i) end
    again:save(path)
    for i, expected in ipairs(model:predict(x)) do assert.same(expected:totable(), flow.load_model(path):predict(x)[i]:totable()) end
  end)

  it("of a file call ops and nothing else", function()
    local path = support.file("forms.keras", "")
    flow.Model { inputs = input, outputs = flow.argsort(input, 2) }:save(path)
    local text = flow.load_model(path):to_json()
    for _, name in ipairs { "save_npy", "operand", "load_model", "no such op" } do
      local message = support.message_of(function() flow.models.model_from_json((text:gsub('"argsort"', '"' .. name .. '"'))) end)
      assert.truthy(message:find(name, 1, true), message)
    end
    local message = support.message_of(function() flow.models.model_from_json((text:gsub("__input__", "__other__"))) end)
    assert.truthy(message:find("flow.argsort in a file has an argument of the kind __other__", 1, true), message)
  end)

  it("of a file are checked before they are called", function()
    local text = flow.Model { inputs = input, outputs = flow.expand_dims(input, 2) }:to_json()
    for axis, said in pairs { ['["a"]'] = 'axis is the string "a", expected a whole number', ["[[1]]"] = "axis is a table",
                              ["[true,1]"] = "axis is true", ["null"] = "ExpandDims in a file has no axis" } do
      local changed, count = text:gsub('"axis":1', '"axis":' .. axis)
      assert.equal(1, count)
      local message = support.message_of(function() flow.models.model_from_json(changed) end)
      assert.truthy(message:find(said, 1, true), message)
    end
  end)

  it("that give several results are read with all of them", function()
    local rows = flow.random.normal({ 3, 8 }, { seed = 1 })
    for name, f in pairs {
      top_k = function(a) return flow.top_k(a, 2) end, rfft = function(a) return flow.rfft(a) end,
      stft = function(a) return flow.stft(a, 4, 2, 4) end, moments = function(a) return flow.moments(a, 2) end,
      split = function(a) return unpack(flow.split(a, 2, 2)) end,
    } do
      local a, path = flow.Input { 8 }, support.folder() .. "/results.keras"
      local model = flow.Model { inputs = a, outputs = { f(a) } }
      model:save(path)
      local expected, found = { f(rows) }, flow.load_model(path):predict(rows, { verbose = 0 })
      assert.equals(2, #found, name)
      for i = 1, 2 do assert.is_true(flow.allclose(expected[i], found[i]):item(), name) end
    end
  end)

  it("that give no row for each row are named by predict", function()
    for shape, output in pairs { ["{}"] = input:sum(), ["{4, 4}"] = input:sum(1), ["{1, 4, 4}"] = input:sum(1, true),
                                 ["{2, 3, 4, 4}"] = flow.stack { input, input } } do
      local model = flow.Model { inputs = input, outputs = output }
      local message = support.message_of(function() model:predict(flow.ones { 3, 4, 4 }, { verbose = 0 }) end)
      assert.truthy(message:find("has the shape " .. shape .. ", which is not one row for each row of a batch", 1, true), message)
    end
  end)
end)
