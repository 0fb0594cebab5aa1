-- log_spec.lua: who hears what the library has to say: a host's print what a user asked for, flow.log.sink all of it, that of C too.
local support = require "spec.support.init"
local flow = require "flow"
local layers = flow.layers

-- f() in this process, which is a host; returns what it printed.
local function printed_by(f)
  local own, lines = print, {}
  rawset(_G, "print", function(text) lines[#lines + 1] = text end)
  local ok, problem = pcall(f)
  rawset(_G, "print", own)
  assert(ok, problem)
  return lines
end

local function heard_by_sink(f)
  local heard = {}
  flow.log.sink = function(level, text) heard[#heard + 1] = level .. ": " .. text end
  local ok, problem = pcall(f)
  flow.log.sink = nil
  assert(ok, problem)
  return heard
end

local x, y = flow.ones { 4, 2 }, flow.ones { 4, 1 }
local function compiled(loss, activation)
  local model = flow.Sequential { layers.Input { 2 }, layers.Dense(1, { activation = activation }) }
  model:compile { optimizer = "sgd", loss = loss }
  return model
end

describe("in a host without a sink", function()
  it("what a user asked for goes to its print", function()
    if os.getenv("FLOW_SANITIZED") then return pending("this file runs in the flowlua program, which is not such a host") end
    local model = compiled "mse"
    local lines = printed_by(function() model:summary() end)
    assert.equal(model:summary_text():gsub("\n$", ""), lines[1])
    lines = printed_by(function() model:fit(x, y, { epochs = 2, verbose = 1 }) end)
    assert.same({ "Epoch 1/2", "Epoch 2/2" }, { lines[1], lines[3] })
    assert.truthy(lines[2]:find("^1/1 %- .* loss: [%d.]+$"), lines[2])
    assert.equal(4, #lines)
    lines = printed_by(function() flow.plot.lines { 1, 2, 3 } end)
    assert.truthy(lines[1]:find("curve"), lines[1])
    lines = printed_by(function() flow.help "flow.zeros" end)
    assert.truthy(lines[1]:find("^flow.zeros%(shape"), lines[1])
  end)

  it("nothing else is printed: progress that nobody asked for, messages, warnings", function()
    assert.same({}, printed_by(function()
      local model = compiled(flow.losses.BinaryCrossentropy { from_logits = true }, "sigmoid")
      model:fit(x, y, { epochs = 2 })
      model:evaluate(x, y)
      model:predict(x)
      flow.log.info "a message"
    end))
  end)

  it("a state without print is served, too", function()
    assert.same({}, printed_by(function()
      rawset(_G, "print", nil)
      compiled("mse"):summary()
    end))
  end)
end)

describe("flow.log.sink", function()
  it("hears progress, messages, and what C warns of", function()
    local heard = heard_by_sink(function()
      local model = compiled(flow.losses.BinaryCrossentropy { from_logits = true }, "sigmoid")
      model:fit(x, y, { epochs = 1 })
      flow.log.info "a message"
    end)
    assert.equal("warning: a loss with from_logits = true was given the output of a softmax or sigmoid; its input is used", heard[1])
    assert.truthy(heard[2]:find("^print: 1/1 "), heard[2])
    assert.equal("info: a message", heard[3])
    assert.is_nil(flow.log.sink)
  end)

  it("hears C in the flowlua program, which writes to its own outputs afterwards as before", function()
    local softmax = support.file("softmax.lua", [[
      local flow = require "flow"
      flow.log.sink = function(level, text) io.write("heard ", level, ": ", text, "\n") end
      local model = flow.Sequential { flow.layers.Input { 2 }, flow.layers.Dense(1, { activation = "sigmoid" }) }
      model:compile { loss = flow.losses.BinaryCrossentropy { from_logits = true } }
      model:fit(flow.ones { 4, 2 }, flow.ones { 4, 1 }, { verbose = 0 })
      flow.log.sink = nil
      flow.log.print "as before\n"]])
    assert.equal("heard warning: a loss with from_logits = true was given the output of a softmax or sigmoid; its input is used\n"
      .. "as before\n", (support.run(support.command .. " " .. softmax .. " 2>&1")))
  end)

  it("refuses what cannot be called", function()
    assert.equal("flow.log.sink is a function(level, text) or nil, got the number 5",
      support.message_of(function() flow.log.sink = 5 end))
  end)
end)
