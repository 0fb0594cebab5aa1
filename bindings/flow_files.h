/* flow_files.h: a part of flow.h, which includes it: files: records, named tensors, events, archives, pictures, tables, folders. Types and
 * conventions are explained there. */
#ifndef FLOW_FILES_H
#define FLOW_FILES_H

/* ---- TFRecord files ---------------------------------------------------------------------------------------------- */

/* compression_type: "" or NULL, "GZIP", "ZLIB". The file appears under its name when the writer is closed; one that is released
 * unclosed, or whose write failed, leaves nothing behind. */
FLOW_API flow_status flow_record_writer_new(const char *path, const char *compression_type, flow_record_writer **out);   /* new reference */
/* A record may be empty. After a write that failed the writer takes nothing more. */
FLOW_API flow_status flow_record_writer_write(flow_record_writer *writer, const void *bytes, double count);   /* one record */
FLOW_API flow_status flow_record_writer_write_example(flow_record_writer *writer, const flow_example *example);
FLOW_API flow_status flow_record_writer_close(flow_record_writer *writer);   /* no further writes */
FLOW_API void        flow_record_writer_release(flow_record_writer *writer);

/* Each add appends to the feature of that name, which holds values of one kind. Values are copied. */
FLOW_API flow_status flow_example_new(flow_example **out);   /* new reference */
FLOW_API flow_status flow_example_add_bytes(flow_example *example, const char *name, const void *bytes, double count);   /* one value */
FLOW_API flow_status flow_example_add_floats(flow_example *example, const char *name, const float *values, double count);
FLOW_API flow_status flow_example_add_integers(flow_example *example, const char *name, const int64_t *values, double count);
/* Returns the number of bytes that the message has, and writes it if size is at least that; -1: out of memory. */
FLOW_API double      flow_example_serialize(const flow_example *example, void *to, double size);
/* The example's own memory; records that were written from it stay. NULL is fine. */
FLOW_API void        flow_example_release(flow_example *example);

/* ---- files of named tensors ------------------------------------------------------------------------------------------ */

/* Formats: "safetensors", "hdf5" (as Keras writes weights). Names are paths "layers/dense/vars/0" in hdf5, anything in safetensors. A
 * note is a text with a key, of the group `path` or of the file (path ""); in safetensors notes are the metadata. */
FLOW_API flow_status flow_tensor_writer_new(flow_tensor_writer **out);   /* new reference */
FLOW_API void        flow_tensor_writer_release(flow_tensor_writer *writer);
/* Whether a safetensors file gets checksums, of each tensor and of names and notes; off at first. */
FLOW_API flow_status flow_tensor_writer_checksums(flow_tensor_writer *writer, int on);
/* A group, which an hdf5 file has even if no tensor is in it. */
FLOW_API flow_status flow_tensor_writer_group(flow_tensor_writer *writer, const char *path);
/* Adds a tensor, of which it keeps a reference: the file gets the content of the moment in which it is saved. */
FLOW_API flow_status flow_tensor_writer_add(flow_tensor_writer *writer, const char *name, flow_tensor *tensor);
FLOW_API flow_status flow_tensor_writer_note(flow_tensor_writer *writer, const char *path, const char *key, const char *text);
/* Puts copies in the place of all tensors, with the contents of now. After a failure some are copied, and it may be called again. */
FLOW_API flow_status flow_tensor_writer_snapshot(flow_tensor_writer *writer);
/* Writes beside `path`, brings it to the disk and renames: after a failure the old file is whole and nothing else is left. */
FLOW_API flow_status flow_tensor_writer_save(const flow_tensor_writer *writer, const char *path, const char *format);

/* The same by a thread, which then, when `path` is safe, writes `text` to the file `then` in the same way (NULL: no such file). Nobody
 * may change the writer meanwhile, nor its tensors: take a snapshot before. Signals are blocked in the thread. */
FLOW_API flow_status flow_save_begin(flow_tensor_writer *writer, const char *path, const char *format, const char *then, const char *text,
                                     flow_save **out);   /* new reference */
FLOW_API flow_status flow_save_wait(flow_save *save);        /* its end, and how it went; may be called again */
FLOW_API int         flow_save_done(const flow_save *save);  /* whether flow_save_wait would return at once */
FLOW_API void        flow_save_release(flow_save *save);     /* waits for its end, too */
/* Removes the temporary files that killed processes left in a folder; returns how many. Those of living writers stay. */
FLOW_API int         flow_remove_abandoned(const char *folder);

/* Opens a file, or an uncompressed member of a zip archive (member NULL: the file itself); the content tells the format. The index is
 * checked as a whole; contents are read by _read. One caller at a time. */
FLOW_API flow_status flow_tensor_file_open(const char *path, const char *member, flow_tensor_file **out);   /* new reference */
/* The same for HDF5 files from sources that are trusted: what Keras does not write (chunks, compression, later versions, a compressed
 * member) is read through libhdf5, by the plugin "hdf5". */
FLOW_API flow_status flow_tensor_file_open_trusted(const char *path, const char *member, flow_tensor_file **out);   /* new reference */
FLOW_API void        flow_tensor_file_release(flow_tensor_file *file);
FLOW_API int         flow_tensor_file_count(const flow_tensor_file *file);
FLOW_API const char *flow_tensor_file_name(const flow_tensor_file *file, int index);     /* from 0; borrowed; NULL beyond the end */
FLOW_API int         flow_tensor_file_find(const flow_tensor_file *file, const char *name);   /* -1: there is none */
/* What the index says of tensor `index`, without its content: dtype (-1: an unknown tensor), dimensions, and whether a checksum is
 * there by which _read compares it. */
FLOW_API int         flow_tensor_file_dtype(const flow_tensor_file *file, int index);
FLOW_API int         flow_tensor_file_rank(const flow_tensor_file *file, int index);
FLOW_API double      flow_tensor_file_dim(const flow_tensor_file *file, int index, int axis);   /* axis from 0 */
FLOW_API int         flow_tensor_file_has_checksum(const flow_tensor_file *file, int index);
/* The text of a note. Borrowed; NULL: there is none. */
FLOW_API const char *flow_tensor_file_note_text(const flow_tensor_file *file, const char *path, const char *key);
/* Notes and groups are numbered from 0, in the order of the file. */
FLOW_API int         flow_tensor_file_note_count(const flow_tensor_file *file);
FLOW_API const char *flow_tensor_file_note_path(const flow_tensor_file *file, int index);   /* borrowed; NULL beyond the end */
FLOW_API const char *flow_tensor_file_note_key(const flow_tensor_file *file, int index);    /* borrowed; NULL beyond the end */
FLOW_API int         flow_tensor_file_group_count(const flow_tensor_file *file);
FLOW_API const char *flow_tensor_file_group_name(const flow_tensor_file *file, int index);   /* path; borrowed; NULL beyond the end */
/* The content of tensor `index`. FLOW_CORRUPT_DATA if it has a checksum that differs. */
FLOW_API flow_status flow_tensor_file_read(flow_tensor_file *file, int index, flow_tensor **out);
/* The same into a tensor of that dtype and shape, whose content is undefined after a failure. */
FLOW_API flow_status flow_tensor_file_read_into(flow_tensor_file *file, int index, flow_tensor *tensor);
/* Reads all contents and compares them with their checksums, keeping nothing: for those who want to know before they change anything. */
FLOW_API flow_status flow_tensor_file_verify(flow_tensor_file *file);

/* ---- events ---------------------------------------------------------------------------------------------------- */

/* A new event file of TensorBoard in a folder that is there; its name ends in suffix ("", ".v2"). Events are kept until there are ten,
 * until the first is two minutes old, or until a flush. A step is a whole number; tags are not empty. */
FLOW_API flow_status flow_event_writer_new(const char *folder, const char *suffix, flow_event_writer **out);   /* new reference */
/* The name of the file, as it is from the beginning on. */
FLOW_API const char *flow_event_writer_path(const flow_event_writer *writer);   /* borrowed */
/* Events of one tag are a series. A write that fails leaves the file as it was; what waits is tried again with the next event. */
FLOW_API flow_status flow_event_writer_scalar(flow_event_writer *writer, const char *tag, double step, double value);
/* text: Markdown, `count` bytes. */
FLOW_API flow_status flow_event_writer_text(flow_event_writer *writer, const char *tag, double step, const char *text, double count);
/* Of all finite values of the tensor, in buckets of one width from the least to the greatest. */
FLOW_API flow_status flow_event_writer_histogram(flow_event_writer *writer, const char *tag, double step, flow_tensor *tensor, int buckets);
/* At most `most` pictures of a contiguous uint8 tensor {count, height, width, 1, 3 or 4}, as PNG. */
FLOW_API flow_status flow_event_writer_images(flow_event_writer *writer, const char *tag, double step, flow_tensor *images, int most);
/* A model for the tab Graphs: Keras' config as JSON, `count` bytes. */
FLOW_API flow_status flow_event_writer_keras_model(flow_event_writer *writer, const char *tag, double step, const char *json, double count);
/* Writes what is kept now, so that TensorBoard sees it. */
FLOW_API flow_status flow_event_writer_flush(flow_event_writer *writer);
FLOW_API flow_status flow_event_writer_close(flow_event_writer *writer);        /* no further events */
FLOW_API void        flow_event_writer_release(flow_event_writer *writer);      /* closes it first; NULL is fine */

/* ---- a page over event files --------------------------------------------------------------------------------------
 * Pages over HTTP, for GET only, from their own thread, of the event files under a folder, which are read as they grow: / is `page`, the
 * text of an HTML file; /runs, /scalars/TAG, /histograms/TAG, /pictures/TAG and /texts/TAG are JSON. Every
 * process that reaches the address can read them. */

typedef struct flow_board flow_board;

/* address: "127.0.0.1:6006"; port 0: a free one. The folder may come later. FLOW_IO_ERROR: it cannot listen there. */
FLOW_API flow_status flow_board_open(const char *folder, const char *address, const char *page, flow_board **out);
/* The port on which it listens, also if the operating system chose it. */
FLOW_API int         flow_board_port(const flow_board *board);
FLOW_API void        flow_board_wait(double seconds);                       /* sleeps so long, or until a signal comes */
FLOW_API void        flow_board_close(flow_board *board);                   /* NULL is fine */

/* ---- archives ---------------------------------------------------------------------------------------------------- */

/* Zip archives, as .keras files are. Opening checks the directory against the rest of the file: names are relative paths, once each.
 * Members that hold tensors are opened by flow_tensor_file_open(path, member, ...). */
FLOW_API flow_status flow_archive_open(const char *path, flow_archive **out);   /* new reference */
FLOW_API void        flow_archive_release(flow_archive *archive);
FLOW_API int         flow_archive_count(const flow_archive *archive);
FLOW_API const char *flow_archive_name(const flow_archive *archive, int index);   /* from 0; borrowed; NULL beyond the end */
/* A member of at most 64 MB, its checksum compared; ends with a zero that does not count. Borrowed. */
FLOW_API flow_status flow_archive_text(flow_archive *archive, const char *member, const char **text, double *bytes);

/* The array in NumPy's format that member `index` holds, its checksum compared: new reference. */
FLOW_API flow_status flow_archive_npy(flow_archive *archive, int index, flow_tensor **out);

/* Writes beside `path`; commit brings it to the disk and renames. A failed _add ends the writer: release it, the old file is whole. */
FLOW_API flow_status flow_archive_writer_new(const char *path, flow_archive_writer **out);   /* new reference */
FLOW_API flow_status flow_archive_writer_add_text(flow_archive_writer *writer, const char *name, const char *text, double bytes);
FLOW_API flow_status flow_archive_writer_add_tensors(flow_archive_writer *writer, const char *name, const flow_tensor_writer *tensors,
                                                     const char *format);   /* streamed from the tensors, uncompressed */
/* As NumPy's archives have it; `name` ends in ".npy". FLOW_UNSUPPORTED for bfloat16, of which the writer goes on. */
FLOW_API flow_status flow_archive_writer_add_npy(flow_archive_writer *writer, const char *name, const flow_tensor *tensor);
FLOW_API flow_status flow_archive_writer_commit(flow_archive_writer *writer);
FLOW_API void        flow_archive_writer_release(flow_archive_writer *writer);   /* without commit: nothing was written */

/* ---- pictures -------------------------------------------------------------------------------------------------- */

/* A picture as uint8 {height, width, channels}: JPEG, PNG, GIF (first frame) or BMP, told by the content. channels: 1, 3 or 4
 * (JPEG: 1 or 3), 0: as many as the file has. */
FLOW_API flow_status flow_image_load(const char *path, int channels, flow_tensor **out);
/* The same of a picture in memory. The bytes are borrowed for the call. */
FLOW_API flow_status flow_image_decode(const void *bytes, double count, int channels, flow_tensor **out);
/* Writes {height, width} or {height, width, 1, 3 or 4} with values 0 to 255 (others than uint8 are rounded and limited); the
 * ending says how: .png .bmp .jpg .jpeg. quality: of JPEG, 1 to 100. */
FLOW_API flow_status flow_image_save(const char *path, const flow_tensor *image, int quality);
/* The sound in a WAVE file: float32 {samples, channels}, values from -1 to below 1, as tf.audio.decode_wav: integers of 8, 16, 24 or 32
 * bits or floats. samples: how many, cut off or filled up with zeros; -1: as many as there are. rate: samples a second; NULL: not
 * wanted. */
FLOW_API flow_status flow_wave_load(const char *path, double samples, int *rate, flow_tensor **out);
/* As tf.image.resize, float32: of {height, width, channels} or a batch of them. interpolation: bilinear, nearest, bicubic, area,
 * lanczos3, lanczos5, gaussian, mitchellcubic. fit: 0 stretches, 1 crops to the new aspect ratio, 2 pads with zeros. */
FLOW_API flow_status flow_image_resize(flow_tensor *images, int height, int width, const char *interpolation, int fit, flow_tensor **out);

/* Names of the folders in a directory (links to folders too, none that begins with a dot), sorted; paths of the files at any
 * depth below one that have one of the endings, such as ".jpg .png", in capitals or not, folder by folder as Keras lists them. */
FLOW_API flow_status flow_listing_folders(const char *directory, flow_listing **out);
FLOW_API flow_status flow_listing_files(const char *directory, int follow_links, const char *endings, flow_listing **out);
FLOW_API void        flow_listing_release(flow_listing *listing);
FLOW_API int         flow_listing_count(const flow_listing *listing);
FLOW_API const char *flow_listing_name(const flow_listing *listing, int index);   /* borrowed; NULL beyond the end */
/* order[i] = where element i of the shuffled list was, from 0: as NumPy's RandomState(seed).shuffle; seed below 2^32. */
FLOW_API flow_status flow_shuffle_order(double seed, int count, int32_t *order);

/* ---- files and folders -------------------------------------------------------------------------------------------- */

enum { FLOW_PATH_NONE = 0, FLOW_PATH_FILE, FLOW_PATH_FOLDER, FLOW_PATH_OTHER };
FLOW_API int         flow_path_kind(const char *path);              /* of what a link leads to; NONE: not there, or out of sight */
FLOW_API flow_status flow_make_folders(const char *path);           /* with those above it; fine if it is there */
FLOW_API flow_status flow_listing_entries(const char *directory, flow_listing **out);   /* names of all in it, sorted, without . and .. */
FLOW_API flow_status flow_remove_file(const char *path);            /* or a link */
FLOW_API flow_status flow_remove_tree(const char *path);            /* a folder and all in it; links in it go, what they lead to stays */
/* overwrite 0: FLOW_INVALID_ARGUMENT where `to` is there. */
FLOW_API flow_status flow_rename_path(const char *from, const char *to, int overwrite);
/* The same of a copy. Readers of `to` see the old content or the new one. */
FLOW_API flow_status flow_copy_file(const char *from, const char *to, int overwrite);
/* Readers see the old content or the new one. */
FLOW_API flow_status flow_write_file(const char *path, const void *bytes, double count);

/* ---- tables of comma-separated values ------------------------------------------------------------------------------ */

/* RFC 4180, gzipped or not. header: the first line holds the names of the columns. Rows count from 0, without the header. */
FLOW_API flow_status flow_csv_open(const char *path, const char *delimiter, int header, flow_csv **out);   /* new reference */
FLOW_API void        flow_csv_release(flow_csv *csv);
/* How many columns the table has, and how many rows; every row has as many fields, else opening failed. */
FLOW_API int         flow_csv_columns(const flow_csv *csv);
FLOW_API double      flow_csv_rows(const flow_csv *csv);
FLOW_API const char *flow_csv_name(const flow_csv *csv, int column);         /* borrowed; NULL without a header */
FLOW_API const char *flow_csv_text(const flow_csv *csv, int column, double row);   /* borrowed */
/* What the fields of a column are: FLOW_INT64; FLOW_FLOAT32, where empty ones become NaN; -1: text. */
FLOW_API int         flow_csv_dtype(const flow_csv *csv, int column);
/* The fields of a column as a tensor of rank 1. FLOW_CORRUPT_DATA names the line of one that is not such a number. */
FLOW_API flow_status flow_csv_tensor(const flow_csv *csv, int column, int dtype, flow_tensor **out);
/* The same of several columns, which is faster than one after the other: dtypes and out have `count` places. All tensors or none. */
FLOW_API flow_status flow_csv_dtypes(const flow_csv *csv, const int *columns, int count, int *dtypes);
FLOW_API flow_status flow_csv_tensors(const flow_csv *csv, const int *columns, const int *dtypes, int count, flow_tensor **out);

#endif
