-- remote_monitor_spec.lua: callbacks.RemoteMonitor: what it gives the script's function of the results of epochs.
local support = require "spec.support.init"
local flow = require "flow"
local json = require "flow.json"
local RemoteMonitor, message_of = flow.callbacks.RemoteMonitor, support.message_of

-- Fits three epochs with the callback of these options and returns the history and what send got.
local function fit(options)
  local sent = {}
  options.send = options.send or function(url, body, headers)
    sent[#sent + 1] = { url = url, body = body, headers = headers }
    return 1
  end
  local model = flow.Sequential { flow.layers.Input { 2 }, flow.layers.Dense(1) }
  model:compile { loss = "mse", metrics = { "mae" } }
  local history = model:fit(flow.ones { 8, 2 }, flow.ones { 8, 1 }, { epochs = 3, verbose = 0, validation_split = 0.25,
    callbacks = { RemoteMonitor(options) } })
  return history.history, sent
end

-- As Python's urllib.parse.parse_qs reads it.
local function field_of(body)
  local name, value = body:match "^([^=]*)=([^=&]*)$"
  local function plain(text) return (text:gsub("+", " "):gsub("%%(%x%x)", function(code) return string.char(tonumber(code, 16)) end)) end
  return plain(name), plain(value)
end

describe("callbacks.RemoteMonitor", function()
  it("sends what each epoch ended with as JSON in a form", function()
    local history, sent = fit {}
    assert.equal(3, #sent)
    for i, request in ipairs(sent) do
      assert.equal("http://localhost:9000/publish/epoch/end/", request.url)
      assert.same({ ["Content-Type"] = "application/x-www-form-urlencoded" }, request.headers)
      local name, value = field_of(request.body)
      assert.equal("data", name)
      assert.same({ epoch = i - 1, loss = history.loss[i], mae = history.mae[i], val_loss = history.val_loss[i],
        val_mae = history.val_mae[i] }, json.decode(value))
    end
    local _, named = fit { field = "a field&" }
    assert.equal("a+field%26=%7B%22epoch%22%3A0%2C", named[1].body:match "^.-%%2C")
  end)

  it("sends JSON itself, to the path and with the headers that it is told", function()
    local history, sent = fit { root = "https://host", path = "/p", send_as_json = true, headers = { Key = "k" } }
    assert.equal("https://host/p", sent[1].url)
    assert.same({ Key = "k", ["Content-Type"] = "application/json" }, sent[1].headers)
    assert.equal(history.loss[1], json.decode(sent[1].body).loss)
    local _, own = fit { send_as_json = true, headers = { ["content-type"] = "text/json" } }
    assert.same({ ["content-type"] = "text/json" }, own[1].headers)
  end)

  it("warns of a server that is not reached and goes on; an error of the function ends the run", function()
    local history
    local lines = support.warnings(function() history = fit { send = function() return nil, "connection refused" end } end)
    assert.equal(3, #history.loss)
    local line = "Could not reach RemoteMonitor root server at http://localhost:9000: connection refused"
    assert.equal(line .. "\n" .. line .. "\n" .. line, lines)
    assert.matches("boom", tostring(select(2, pcall(fit, { send = function() error("boom", 0) end }))), 1, true)
  end)

  it("says what to write where there is no function, and which headers are none", function()
    assert.matches("write send = function(url, body, headers) ... end", message_of(function() RemoteMonitor() end), 1, true)
    assert.matches("send", message_of(function() RemoteMonitor({ send = 3 }) end), 1, true)
    assert.matches("the entry 1 is the string \"a\"", message_of(function() RemoteMonitor { headers = { "a" }, send = print } end), 1, true)
    assert.matches("headers is a table of names and texts, got the string",
      message_of(function() RemoteMonitor { headers = "a", send = print } end), 1, true)
  end)
end)
