-- server_end.lua: a task of server_end_spec.lua. arg[1]: a folder. A chief with MEETS connects to ps:0 alone, waits until the worker of
-- that name is connected (none: ""), and says goodbye, as a chief that has done all; others construct the strategy and wait for the chief.
-- They write the files `began` and `connected` before and after, with the number of their process.
local flow = require "flow"
local folder, meets = arg[1], os.getenv "MEETS"

local function write(name)
  local file = assert(io.open(("%s/%s"):format(folder, name), "w"))
  file:write(io.open("/proc/self/stat"):read "*n")
  file:close()
end

if not meets then
  write "began"
  local coordinator = flow.distribute.ClusterCoordinator(flow.distribute.ParameterServerStrategy { max_restarts = 1 })
  write "connected"
  coordinator:join()
  return
end

-- A chief of parameter servers that talks to ps:0 only.
local native = require "flow.ffi"
local json = require "flow.json"
local C, resolver = native.C, flow.distribute.TFConfigClusterResolver()
local out, bytes, count = native.out "flow_server_link", native.array("char *", 1), native.array("double", 1)

local function connect()
  native.check(C.flow_server_link_open(native.context, resolver._handle, 0, out))
  local link = native.own(out, C.flow_server_link_close)
  native.check(C.flow_server_link_reach(link, 20))
  return link
end

local function ask(link, message)
  local text, list = json.encode(message), native.array("flow_server_link *", 1)
  native.check(C.flow_server_link_send(link, text, #text, nil, nil, 0))
  list[0] = link
  native.check(C.flow_server_links_await(list, 1, 20))
  return json.decode(native.string(C.flow_server_link_answer(link, bytes, count)))
end

local function hello(link, name)
  return ask(link, { is = "hello", protocol = 2, version = native.string(C.flow_version()), name = name, chief = name == "chief:0",
                     cluster = native.text(C.flow_cluster_hash, resolver._handle), process = 0 })
end

local link = connect()
assert(not hello(link, "chief:0").error)
-- The worker is there when ps:0 has two connections, of which one is this chief's; it says its name at once. To ask for it by a hello of
-- that name would be to take its place for a moment, in which it may come.
local address = (":%04X"):format(tonumber(os.getenv("TF_CONFIG"):match '"ps":%["127%.0%.0%.1:(%d+)'))
local function connections()
  local found = 0
  for line in io.lines "/proc/net/tcp" do
    if line:match "^%s*%d+: %x+(:%x+) %x+:%x+ 01 " == address then found = found + 1 end
  end
  return found
end
if meets ~= "" then
  while connections() < 2 do os.execute "sleep 0.2" end
  os.execute "sleep 0.5"
end
ask(link, { is = "bye" })
native.close(link, C.flow_server_link_close)
