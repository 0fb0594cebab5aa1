-- callbacks/remote_monitor.lua: sends the results of every epoch to a server, as keras/src/callbacks/remote_monitor.py does. The library
-- opens no connections for it: a function of the script does, with the host's HTTP client.

local errors = require "flow.errors"
local json = require "flow.json"
local log = require "flow.log"
local native = require "flow.ffi"
local callbacks = require "flow.train.callback"
local takes_named = require("flow.signature").takes_named

local raise = errors.raise
local RemoteMonitor = callbacks.stock("RemoteMonitor")

-- send(url, body, headers) posts the text body; where it returns nil and a message, as LuaSocket's request does, that is a warning, and the
-- training goes on. body is the JSON of { epoch, and the logs }, or, unless send_as_json, a form whose field `field` holds it.
takes_named("root: text = 'http://localhost:9000', path: text = '/publish/epoch/end/', field: text = 'data', headers?,"
  .. " send_as_json: boolean = false, send?: callable")
function RemoteMonitor:init(given)
  callbacks.keep(self, RemoteMonitor, given)
  if not self.send then
    raise("RemoteMonitor: there is no send, and the library opens no connections to other servers: write send = function(url, body, "
      .. "headers) ... end, which posts the text body to url, by LuaSocket's socket.http or what the host has")
  end
  if self.headers and (type(self.headers) ~= "table" or getmetatable(self.headers)) then
    raise("RemoteMonitor: headers is a table of names and texts, got %s", errors.describe(self.headers))
  end
  for name, value in pairs(self.headers or {}) do
    if type(name) ~= "string" or type(value) ~= "string" then
      raise("RemoteMonitor: headers is a table of names and texts; the entry %s is %s", tostring(name), errors.describe(value))
    end
  end
end

-- Text as forms have it: spaces are "+", and all but letters, digits and _.-~ is %XX.
local function in_form(text)
  return (text:gsub("[^%w_.~ -]", function(c) return ("%%%02X"):format(c:byte()) end):gsub(" ", "+"))
end

-- The headers of a request: those given, and what the body is, unless they say so, in letters of either case.
local function headers_of(self)
  local headers, is_said = {}, false
  for name, value in pairs(self.headers or {}) do
    headers[name] = value
    is_said = is_said or name:lower() == "content-type"
  end
  if not is_said then headers["Content-Type"] = self.send_as_json and "application/json" or "application/x-www-form-urlencoded" end
  return headers
end

function RemoteMonitor:on_epoch_end(epoch, logs)
  local event = { epoch = epoch }
  for name, value in pairs(logs) do event[name] = native.is_tensor(value) and value:item() or value end
  local body = json.encode(event)
  if not self.send_as_json then body = in_form(self.field) .. "=" .. in_form(body) end
  local sent, problem = self.send(self.root .. self.path, body, headers_of(self))
  if not sent and problem ~= nil then
    log.warning("Could not reach RemoteMonitor root server at %s: %s", self.root, tostring(problem))
  end
end

return RemoteMonitor
