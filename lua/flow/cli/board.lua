-- cli/board.lua: flowlua board DIR: a page over the event files of trainings, from a small server in C; this module opens and ends it. The
-- server has its own thread that reads the files and answers; this thread only waits for Ctrl-C or SIGTERM.

local flow = require "flow"
local native = require "flow.ffi"
local read_options = require "flow.cli.options"

local C, raise = native.C, flow.errors.raise

local USAGE = [[
Usage: flowlua board DIR [--port N] [--host ADDRESS]

Shows the event files under a folder, as flow.callbacks.TensorBoard, TensorFlow and PyTorch write them, on a page: curves, histograms,
pictures, models and texts of all runs, renewed while they train. Ctrl-C ends it.

  --port N         the port (6006, or a free one if another process has that)
  --host ADDRESS   where it listens (127.0.0.1, which only this machine reaches; 0.0.0.0: any machine that reaches it can read everything)]]

local USUAL_PORT = 6006

-- Returns 0 and the server, which is closed with native.close or by the collector, or another status and false; flow_last_error says why
-- then. port: 0 for a free one. An address of IPv6 gets the brackets that its colons need.
local function open(folder, host, port)
  local out = native.out("flow_board")
  local address = (host:find(":", 1, true) and not host:find("[", 1, true) and "[%s]:%d" or "%s:%d"):format(host, port)
  local status = C.flow_board_open(folder, address, require "flow.cli.board_page", out)
  return status, status == 0 and native.own(out, C.flow_board_close)
end

-- The port of --port as a number; nil: not given. Raises for other texts.
local function check_port(port)
  if port == "" then return nil end
  local number = tonumber(port)
  local fits = number and number >= 0 and number <= 65535 and number % 1 == 0
  if not fits then raise("board: --port is a whole number up to 65535, got %s", port) end
  return number
end

return function(_, arguments)
  local options = read_options("board", USAGE, { port = "", host = "127.0.0.1" }, arguments)
  local folder = options[1] and flow.io.path(options[1], "board")
  if not folder then raise("board: which folder? flowlua board logs") end
  if options[2] then raise("board: one folder at a time, got %s and %s: their common folder shows both", options[1], options[2]) end
  local port = check_port(options.port)
  local status, board = open(folder, options.host, port or USUAL_PORT)
  if status ~= 0 and not port then status, board = open(folder, options.host, 0) end
  if status ~= 0 then raise("board: %s", native.string(C.flow_last_error())) end
  if not flow.io.exists(folder) then print(("%s does not exist yet; the page shows what will be written there"):format(folder)) end
  local shown = options.host:find(":", 1, true) and not options.host:find("[", 1, true) and "[" .. options.host .. "]" or options.host
  print(("%s: http://%s:%d/ (Ctrl-C ends it)"):format(folder, shown, C.flow_board_port(board)))
  native.defer_interrupts(function()
    while not native.interrupted() and not native.preempted() do C.flow_board_wait(0.5) end
    native.clear_interrupt()
  end)
  native.close(board, C.flow_board_close)
end
