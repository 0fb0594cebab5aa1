-- every_signature_spec.lua: no public function takes one argument too many, an option that it does not know, a dot where a colon belongs,
-- or a colon where a dot belongs.
require "spec.support.init"
local flow = require "flow"
local signature = require "flow.signature"
local all = require "spec.support.public"

-- Functions of classes that make or extend classes: their first argument is a class.
local OF_CLASSES = { extend = true, from_record = true, new = true }
-- Functions that hand all arguments that follow to a function of the user's.
local HAND_ON = { ["flow.device"] = true, ["flow.tidy"] = true, ["flow.profile"] = true, ["GradientTape:record"] = true,
  ["tape:record"] = true }
-- They take any number of equal arguments.
local VARIADIC = { ["flow.io.join"] = true }
-- Their last argument is a table of names that users choose.
local ANY_NAMES = { ["flow.train.Checkpoint"] = true, ["flow.data.parse_example"] = true, ["flow.data.serialize_example"] = true,
  ["flow.args"] = true, ["flow.image_dataset_from_directory"] = true, ["flow.save_safetensors"] = true,
  ["flow.metrics.MeanMetricWrapper"] = true }

--- All functions refuse what arguments(entry) gives them, a list of lists of arguments or nil, with a message that names the caller's line
--- and then has the pattern `wanted`.
local function assert_refused(wanted, arguments)
  local accepted = {}
  for _, entry in ipairs(all) do
    for _, given in ipairs(arguments(entry) or {}) do
      local ok, message = pcall(function() entry.f(unpack(given, 1, given.n or #given)) end)
      if ok or not tostring(message):find("^[^\n]*_spec%.lua:%d+: .*" .. wanted) then
        accepted[#accepted + 1] = entry.name .. ": " .. tostring(message)
        break
      end
    end
  end
  assert.equal("", table.concat(accepted, "\n"))
end

--- Its self, if it has one, and `last` as argument number `count` that a user writes.
local function with_last(entry, count, last)
  if entry.make_self then count = count + 1 end
  local given = { entry.make_self and entry.make_self(), n = count }
  given[count] = last
  return { given }
end

describe("every public function", function()
  it("is found, and has a record", function()
    assert.is_true(#all > 500, #all)
    local without = {}
    for _, entry in ipairs(all) do
      if not signature.of(entry.f) and not OF_CLASSES[entry.name:match("[%w_]+$")] then without[#without + 1] = entry.name end
    end
    assert.equal("", table.concat(without, " "))
  end)

  it("refuses one argument too many, and says which", function()
    assert_refused("123454321", function(entry)
      local record = signature.of(entry.f)
      if not record or record.any or record.variadic or HAND_ON[entry.name] or VARIADIC[entry.name] then return end
      local options = record.options_by_position or 0
      return with_last(entry, #record.positional + math.max(options, record.options and 1 or 0) + 1, 123454321)
    end)
  end)

  it("refuses an option that it does not know, by its name", function()
    assert_refused("no_such_option", function(entry)
      local record = signature.of(entry.f)
      if not record or record.any or record.variadic and not record.options then return end
      if HAND_ON[entry.name] or ANY_NAMES[entry.name] then return end
      return with_last(entry, #record.positional + 1, { no_such_option = 1 })
    end)
  end)

  it("says that a colon belongs where a method is called with a dot", function()
    assert_refused("called with a dot", function(entry) return entry.make_self and { { 1 }, { "text" }, { {} }, { flow } } end)
  end)

  it("says so of methods that objects have of their own, too", function()
    local scale = flow.optimizers.Optimizer:extend("Scale")
    function scale:build() end
    for title, object in pairs { mean = flow.metrics.Mean(), auc = flow.metrics.AUC(), iou = flow.metrics.MeanIoU { num_classes = 2 },
                                 lamb = flow.optimizers.Lamb(), scale = scale() } do
      for key, f in pairs(object) do
        for _, given in ipairs(type(f) == "function" and key:find("^%a") and { { n = 0 }, { 1, n = 1 }, { flow, n = 1 } } or {}) do
          local ok, message = pcall(function() f(unpack(given, 1, given.n)) end)
          assert.is_false(ok, title .. "." .. key)
          assert.truthy(message:find("^[^\n]*_spec%.lua:%d+: " .. key .. " is a method, it was called with a dot"), message)
        end
      end
    end
    local ok, message = pcall(function() return flow.metrics.Mean():result(1) end)
    assert.is_false(ok)
    assert.truthy(message:find("metric:result takes no arguments; the number 1", 1, true), message)
  end)

  it("says that a dot belongs where a function is called with a colon", function()
    assert_refused("with a dot", function(entry)
      if entry.make_self or not entry.name:find("^flow%.") or OF_CLASSES[entry.name:match("[%w_]+$")] then return end
      local module = flow
      for name in entry.name:gmatch("([%w_]+)%.") do
        if name ~= "flow" then module = module and rawget(module, name) end
      end
      return { { module, 1, n = 2 } }
    end)
  end)
end)
