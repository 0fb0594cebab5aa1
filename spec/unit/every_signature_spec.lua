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
  ["flow.args"] = true, ["flow.image_dataset_from_directory"] = true, ["flow.save_safetensors"] = true }

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
    local accepted = {}
    for _, entry in ipairs(all) do
      local record = signature.of(entry.f)
      if record and not record.any and not record.variadic and not HAND_ON[entry.name] and not VARIADIC[entry.name] then
        local count = #record.positional + (entry.make_self and 1 or 0) + (record.options and 1 or 0)
        local given = { entry.make_self and entry.make_self() }
        given[count + 1] = 123454321
        local ok, message = pcall(function() entry.f(unpack(given, 1, count + 1)) end)
        if ok or not tostring(message):find("123454321", 1, true) or not tostring(message):find("^[^\n]*_spec%.lua:%d+: ") then
          accepted[#accepted + 1] = entry.name .. ": " .. tostring(message)
        end
      end
    end
    assert.equal("", table.concat(accepted, "\n"))
  end)

  it("refuses an option that it does not know, by its name", function()
    local accepted = {}
    for _, entry in ipairs(all) do
      local record = signature.of(entry.f)
      local reads = record and not record.any and (record.options or not record.variadic)
      if reads and not HAND_ON[entry.name] and not ANY_NAMES[entry.name] then
        local count = #record.positional + (entry.make_self and 1 or 0)
        local given = { entry.make_self and entry.make_self() }
        given[count + 1] = { no_such_option = 1 }
        local ok, message = pcall(function() entry.f(unpack(given, 1, count + 1)) end)
        if ok or not tostring(message):find("no_such_option", 1, true) or not tostring(message):find("^[^\n]*_spec%.lua:%d+: ") then
          accepted[#accepted + 1] = entry.name .. ": " .. tostring(message)
        end
      end
    end
    assert.equal("", table.concat(accepted, "\n"))
  end)

  it("says that a colon belongs where a method is called with a dot", function()
    local accepted = {}
    for _, entry in ipairs(all) do
      if entry.make_self then
        for _, first in ipairs { 1, "text", {}, flow } do
          local ok, message = pcall(function() entry.f(first) end)
          if ok or not tostring(message):find("^[^\n]*_spec%.lua:%d+: .*called with a dot") then
            accepted[#accepted + 1] = entry.name .. ": " .. tostring(message)
            break
          end
        end
      end
    end
    assert.equal("", table.concat(accepted, "\n"))
  end)

  it("says that a dot belongs where a function is called with a colon", function()
    local accepted = {}
    for _, entry in ipairs(all) do
      local module = flow
      for name in entry.name:gmatch("([%w_]+)%.") do
        if name ~= "flow" then module = module and rawget(module, name) end
      end
      if not entry.make_self and entry.name:find("^flow%.") and not OF_CLASSES[entry.name:match("[%w_]+$")] then
        local ok, message = pcall(function() entry.f(module, 1) end)
        if ok or not tostring(message):find("^[^\n]*_spec%.lua:%d+: .*with a dot") then
          accepted[#accepted + 1] = entry.name .. ": " .. tostring(message)
        end
      end
    end
    assert.equal("", table.concat(accepted, "\n"))
  end)
end)
