-- links.lua: this process's connections to all parameter servers of its cluster: questions and answers (task.lua).

local native = require "flow.ffi"
local errors = require "flow.errors"
local json = require "flow.json"
local host = require "flow.host"
local log = require "flow.log"
local script = require "flow.command_line"
local server_task = require "flow.distribute.servers.task"

local C, check, raise = native.C, native.check, errors.raise
local context = native.context

local Links = {}
Links.__index = Links
local server_links = {}
local WHAT, FOR_EVER, LOOK_EVERY, TELL_EVERY = "ParameterServerStrategy", math.huge, 0.5, 5      -- seconds
local out_link, out_bytes, out_count = native.out("flow_server_link"), native.array("char *", 1), native.array("double", 1)

-- What a call of a link has come to; that a server was lost is kept.
local function settle(self, status)
  status = tonumber(status)
  if status == C.FLOW_ABORTED then self.lost = true end
  check(status)
end

-- pieces: { n = , at = array, bytes = array }, or nil.
local function send(self, server, message, pieces)
  local link = self._list[server] or raise("this strategy was closed")
  local text = json.encode(message)
  settle(self, C.flow_server_link_send(link, text, #text, pieces and pieces.at, pieces and pieces.bytes, pieces and pieces.n or 0))
end

-- The answer's table, its bytes (borrowed until the next message to this server; nil: they went to places), and how many they are.
local function answer_of(self, server)
  local said = json.decode(native.string(C.flow_server_link_answer(self._list[server], out_bytes, out_count)))
  if said.error then raise("%s", said.error) end
  return said, out_bytes[0] ~= nil and out_bytes[0] or nil, tonumber(out_count[0])
end

-- Waits for the answers of all servers, each of which was asked. take(server, said, bytes, count) sees them.
local function await_all(self, take)
  local list = native.array("flow_server_link *", self.count)
  for server = 1, self.count do list[server - 1] = self._list[server] end
  settle(self, C.flow_server_links_await(list, self.count, FOR_EVER))
  for server = 1, self.count do
    local said, bytes, count = answer_of(self, server)
    if take then take(server, said, bytes, count) end
  end
end

-- The chief has ended in order: this process ends likewise, and says so to every server, each of which waits for the workers that it has
-- lost. A server that is not there any more is not waited for.
local function leave(self, hello)
  for server = 1, self.count do
    pcall(function()
      if not self._list[server] then
        check(C.flow_server_link_open(context, self._resolver._handle, server - 1, out_link))
        local link = native.own(out_link, C.flow_server_link_close)
        check(C.flow_server_link_reach(link, LOOK_EVERY))
        self._list[server] = link
        self:ask(server, hello)
      end
      self:ask(server, { is = "bye" })
    end)
  end
  self:close()
  error(setmetatable({ code = 0, text = ("%s: the chief has ended, and so does %s"):format(WHAT, self.name) }, script.Exit), 0)
end

-- Waits until a server is reached. Meanwhile those before it are asked whether the job is over: they wait for any worker that has said
-- hello, and this server may have ended.
local function reach(self, server, within, hello)
  check(C.flow_server_link_open(context, self._resolver._handle, server - 1, out_link))
  local link, began, told = native.own(out_link, C.flow_server_link_close), C.flow_clock(), 0
  while true do
    local passed = C.flow_clock() - began
    local status = tonumber(C.flow_server_link_reach(link, math.min(LOOK_EVERY, math.max(within - passed, 0))))
    if status ~= C.FLOW_TIMED_OUT then
      check(status)
      self._list[server] = link
      return
    end
    local why = native.string(C.flow_last_error())
    passed = C.flow_clock() - began
    if passed >= within then
      raise("a parameter server did not come within %g s (is it running, and is that its address? If the job has ended, all tasks have "
        .. "to start again): %s", within, why)
    end
    if passed >= told + TELL_EVERY then
      told = told + TELL_EVERY
      log.info("%s waits for a parameter server: %s", self.name, why)
    end
    for earlier = 1, server - 1 do
      if self:ask(earlier, { is = "is_done" }).done then leave(self, hello) end
    end
  end
end

-- Says hello to a server as soon as it is reached: until a message has come, the server takes each connection for a stranger's, and waits
-- for a few seconds only. rejoins: this process was connected before.
local function connect(self, within, rejoins)
  local hello = { is = "hello", protocol = server_task.PROTOCOL, version = native.string(C.flow_version()), name = self.name,
                  chief = self.is_chief, cluster = native.text(C.flow_cluster_hash, self._resolver._handle), process = 0,
                  rejoins = rejoins }
  for server = 1, self.count do
    reach(self, server, within, hello)
    local said = self:ask(server, hello)
    if said.done then leave(self, hello) end
    self.renewed[server] = self.renewed[server] or rejoins and self._began[server] ~= said.began
    self._began[server] = said.began
  end
end

-- start_within: seconds in which all servers have to come. links.lost: one of them has gone; links.renewed[i]: server i is another process
-- than it was, until somebody has taken note of it.
function server_links.open(resolver, name, is_chief, start_within)
  local self = setmetatable({ count = C.flow_cluster_count(resolver._handle, C.FLOW_JOB_PS), _list = {}, name = name, is_chief = is_chief,
                              _resolver = resolver, _began = {}, lost = false, renewed = {}, _borrowed = false }, Links)
  connect(self, start_within, nil)
  return self
end

-- Connects to all servers again, after one was lost: it may have been restarted.
function Links:reopen(within)
  self:close()
  self.lost = false
  connect(self, within, true)
end

function Links:close()
  for _, link in pairs(self._list) do native.close(link, C.flow_server_link_close) end      -- some may be missing
  self._list = {}
end

-- Asks one server, from 1.
function Links:ask(server, message, pieces)
  send(self, server, message, pieces)
  local list = native.array("flow_server_link *", 1)
  list[0] = self._list[server]
  settle(self, C.flow_server_links_await(list, 1, FOR_EVER))
  return answer_of(self, server)
end

-- Messages of at most this many bytes go through memory from now on, if the server is on this machine and can open it.
function Links:share(server, bytes)
  if host.getenv "FLOW_SHARED_MEMORY" == "0" then return false end
  local where = native.array("char", 128)
  if C.flow_server_link_share(self._list[server], bytes, where, 128) ~= 0 then return false end
  local shared = self:ask(server, { is = "share", bytes = bytes, where = native.string(where) }).shared
  if not shared then check(C.flow_server_link_share(self._list[server], 0, where, 128)) end
  return shared
end

-- Asks all servers at once: message_of(server) is a message, its pieces, and the places, in the form of pieces, that the answer's bytes
-- go to if they are as many, or nil; take(server, said, bytes, count) sees the answers, with bytes = nil where they went to places.
function Links:ask_all(message_of, take)
  self._borrowed = {}                                     -- kept alive until all is there
  for server = 1, self.count do
    local link = self._list[server] or raise("this strategy was closed")
    local message, pieces, places = message_of(server)
    self._borrowed[server] = places
    if places then settle(self, C.flow_server_link_expect(link, places.at, places.bytes, places.n)) end
    send(self, server, message, pieces)
  end
  await_all(self, take)
  self._borrowed = false
end

return server_links
