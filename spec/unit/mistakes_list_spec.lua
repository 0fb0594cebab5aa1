-- mistakes_list_spec.lua: mistakes of the first days, and the whole message of each: it names the call, what was found and what to do, at
-- the user's line. spec/support/mistakes.txt has an expression on each line, and under it its message, in which ... at the end stands for
-- a list that grows. The expressions find flow, layers, x {8, 4}, y {8, 1}, ds of batches of both, a compiled model m and a checkpoint c.
local support = require "spec.support.init"
local flow = require "flow"
local layers = flow.layers

local function environment()
  flow.clear_session()
  local m = flow.Sequential { layers.Input { 4 }, layers.Dense(1) }
  m:compile { loss = "mse" }
  local x, y = flow.ones { 8, 4 }, flow.ones { 8, 1 }
  return setmetatable({ flow = flow, layers = layers, m = m, x = x, y = y, c = flow.train.Checkpoint { v = flow.Variable(1) },
    ds = flow.data.Dataset.from_tensor_slices({ x, y }):batch(2) }, { __index = _G })
end

-- The message of the error that an expression raises, without the position that it must have.
local function message_of(code)
  local chunk = assert(loadstring("local result = " .. code .. "\nreturn result", "=mistake"))
  local ok, message = pcall(setfenv(chunk, environment()))
  if ok then return "no error" end
  return (tostring(message):gsub("^mistake:1: ", "", 1):gsub("^%s*$", "no text")), tostring(message):find("^mistake:1: ") ~= nil
end

describe("a mistake", function()
  it("has a message that names the call, what was found and what to do: more than 200 of them", function()
    local wrong, count = {}, 0
    local sink = flow.log.sink
    flow.log.sink = function() end
    for code, expected in support.read(support.root .. "spec/support/mistakes.txt"):gmatch("([^\n]+)\n  ([^\n]+)\n") do
      count = count + 1
      local message, at_line = message_of(code)
      local beginning = expected:match("^(.*)%.%.%.$")
      local same = message == expected or beginning and message:sub(1, #beginning) == beginning
      if not same then wrong[#wrong + 1] = ("%s\n  expected: %s\n  found:    %s"):format(code, expected, message)
      elseif not at_line then wrong[#wrong + 1] = code .. ": the message names another line than the user's" end
    end
    flow.log.sink = sink
    assert.is_true(count > 200, count)
    assert.equal("", table.concat(wrong, "\n"))
  end)
end)
