-- own_steps_spec.lua: a model with its own train_step (own_steps.lua) trains on two devices and as two processes as it does alone.
local support = require "spec.support.init"

local script = support.root .. "spec/dist/own_steps.lua"

-- All numbers that the program prints, those of worker 0 where there are several.
local function numbers_of(command, ...)
  local text, code = support.run("timeout -k 5 120 " .. command:format(...))
  assert.equal(0, code, text)
  local list = {}
  for line in text:gmatch "[^\n]+" do
    line = line:gsub("^%[worker:0%] ", "")
    if line:find "^epoch" or line:find "^weights" then
      for number in line:gmatch "%d+%.%d+" do list[#list + 1] = tonumber(number) end
    end
  end
  assert.equal(7, #list, text)
  return list
end

describe("a model with its own train_step", function()
  local alone
  local function check(found)
    alone = alone or numbers_of("%q %q", support.program, script)
    for i, number in ipairs(alone) do assert.near(number, found[i], 2e-5 * math.max(1, math.abs(number))) end
  end

  it("is the same on two devices", function() check(numbers_of("%q %q --devices 2", support.program, script)) end)

  for _, engine in ipairs { "RING", "MPI" } do
    it("is the same as two processes, " .. engine, function()
      local missing = engine == "MPI" and support.missing_engine("MPI", true)
      if missing then return pending(missing) end
      check(numbers_of("%q launch --workers 2 --threads 1 --engine %s %q -- --engine %s", support.program, engine:lower(), script, engine))
    end)
  end
end)
