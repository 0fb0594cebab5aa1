-- callbacks/csv_logger.lua: the results of every epoch as a line of a table of comma-separated values (Python's csv.excel: RFC 4180).
--
-- Fields: keys, the columns after "epoch", which the first epoch chooses, or false; _file, the open file, or false; _before, bytes that
-- were in the file when the run began (append); _written, all text that this run has written, from which a resumed run restores the file.

local io = require("flow.host").io
local native = require "flow.ffi"
local errors = require "flow.errors"
local python_format = require "flow.callbacks.python_format"
local callbacks = require "flow.train.callback"
local signature = require "flow.signature"

local raise = errors.raise
local CSVLogger = callbacks.stock("CSVLogger")

signature.takes_named "filename: text, separator: text = ',', append: boolean = false"
function CSVLogger:init(given)
  callbacks.keep(self, CSVLogger, given)
  if #self.separator ~= 1 then
    raise("CSVLogger: separator is a single character, got %s", errors.describe(self.separator))
  end
  self.filename = require("flow.io").path(self.filename, "CSVLogger")
  self.keys, self._file, self._before, self._written = false, false, 0, ""
end

function CSVLogger:_path() return self.filename end

-- A silent one knows what the other worker has written: it may have to tell it, if that one is lost and comes back.
local function write(self, text)
  if not self._silent then
    if not self._file then raise("CSVLogger: call on_train_begin() before the first epoch ends: it opens %s", self.filename) end
    local ok, message = self._file:write(text)
    if ok then ok, message = self._file:flush() end
    if not ok then raise("CSVLogger: cannot write %s: %s", self.filename, message) end
  end
  self._written = self._written .. text
end

-- Bytes of the file as it is; 0: there is none.
local function size_of(path)
  local file = signature.internal(require "flow.io").open_existing(path)
  local size = file and file:seek("end") or 0
  if file then file:close() end
  return size
end

-- Opens the file, whose folder is made if it is not there. Raises for a path that cannot be written.
local function open(self, mode)
  if self._silent then return end
  local files, folder = require "flow.io", self.filename:match("^(.+)/[^/]*$")
  signature.internal(files).check_writable(self.filename, "CSVLogger")
  if folder then files.makedirs(folder) end
  local file, message = io.open(self.filename, mode)
  if not file then raise("CSVLogger: cannot write %s", message) end
  self._file = file
end

local function close(self)
  if self._file then self._file:close() end
  self._file = false
end

-- Opened at the start, so that a path that cannot be written shows before an epoch is spent.
function CSVLogger:on_train_begin()
  close(self)
  open(self, self.append and "ab" or "wb")
  self._before, self._written, self.keys = self.append and size_of(self.filename) or 0, "", false
end

-- A value as one cell: numbers as Python's repr, quotes where the text has a separator, a quote or a line end.
local function cell(self, value)
  local text = type(value) == "number" and python_format.repr(value) or tostring(value)
  if text:find('[\r\n"]') or text:find(self.separator, 1, true) then text = '"' .. text:gsub('"', '""') .. '"' end
  return text
end

-- Makes the text of a line; overwrites the list.
local function line(self, cells)
  for i, value in ipairs(cells) do cells[i] = cell(self, value) end
  return table.concat(cells, self.separator) .. "\r\n"
end

-- The columns are the names of the first epoch's logs, sorted; if it was not validated, there are val_ columns for when later ones are.
local function choose_keys(logs)
  local keys, validated = {}, false
  for key in pairs(logs) do
    if type(key) == "string" then
      keys[#keys + 1] = key
      validated = validated or key:find("^val_") ~= nil
    end
  end
  table.sort(keys)
  for i = 1, validated and 0 or #keys do keys[#keys + 1] = "val_" .. keys[i] end
  return keys
end

-- A name that the logs do not have this time is NA; names that the first epoch did not have are left out.
function CSVLogger:on_epoch_end(epoch, logs)
  if not self.keys then
    self.keys = choose_keys(logs)
    if self._before == 0 then write(self, line(self, { "epoch", unpack(self.keys) })) end
  end
  local cells = { ("%d"):format(epoch) }
  for i, key in ipairs(self.keys) do
    local value = logs[key]
    cells[i + 1] = value == nil and "NA" or value
  end
  write(self, line(self, cells))
end

function CSVLogger:on_train_end()
  close(self)
end

function CSVLogger:get_state()
  return { keys = self.keys, before = self._before, written = self._written }
end

-- What the run wrote after the backup was made will be written again: the file goes back to what it was then.
function CSVLogger:set_state(state)
  self.keys, self._before, self._written = state.keys, state.before, state.written
  if self._silent then return end
  close(self)
  local file, kept = signature.internal(require "flow.io").open_existing(self.filename), ""
  if file then
    kept = state.before > 0 and file:read(state.before) or ""
    file:close()
  end
  local content = kept .. state.written      -- what was there before the run, and the run up to the backup
  native.check(native.C.flow_write_file(self.filename, content, #content))
  open(self, "ab")
  self._before = #kept
end

return CSVLogger
