/* SPDX-License-Identifier: Apache-2.0 */
/* The first record of a journal: which model it is about. */
#include "edit_private.h"
#include "view_replay.h"

#define MODEL_VERSION 1

int stfs_replay_describe_begin(struct stfs_buf *payload, uint32_t n_files)
{
	int r = stfs_payload_u64(payload, MODEL_VERSION);

	return r < 0 ? r : stfs_payload_u64(payload, n_files);
}

int stfs_replay_describe_file(struct stfs_buf *payload, struct stfs_slice shown, uint64_t size, struct timespec mtime,
			      struct stfs_slice header)
{
	static const struct stfs_hash_key key = { UINT64_C(0x6d6f64656c206964), UINT64_C(0x656e746974790a0a) };
	int r = stfs_payload_bytes(payload, shown);

	if (r == 0)
		r = stfs_payload_u64(payload, size);
	if (r == 0)
		r = stfs_payload_u64(payload, (uint64_t)mtime.tv_sec);
	if (r == 0)
		r = stfs_payload_u64(payload, (uint64_t)mtime.tv_nsec);
	return r < 0 ? r : stfs_payload_u64(payload, stfs_hash(key, header.p, header.len));
}

int stfs_replay_describe_snapshot(struct stfs_buf *payload, const struct stfs_snapshot *file)
{
	const struct stfs_identity *identity = stfs_snapshot_identity(file);
	const struct stfs_header *header = stfs_snapshot_header(file);

	return stfs_replay_describe_file(payload, stfs_slice_of(stfs_snapshot_name(file)), identity->size,
					 identity->mtime, (struct stfs_slice){ header->text, header->text_len });
}

int stfs_replay_describe_model(const struct stfs_model *model, struct stfs_buf *payload)
{
	int r = stfs_replay_describe_begin(payload, model->n_files);

	for (uint32_t i = 0; r == 0 && i < model->n_files; i++)
		r = stfs_replay_describe_snapshot(payload, model->files[i]);
	return r;
}

int stfs_replay_start_journal(const struct stfs_view *view, struct stfs_journal *journal)
{
	_cleanup_buf_ struct stfs_buf payload = { 0 };
	int r = stfs_payload_u64(&payload, view->options.layout);

	if (r == 0)
		r = stfs_replay_describe_model(view->model, &payload);
	return r < 0 ? r : stfs_journal_append(journal, STFS_RECORD_MODEL, stfs_buf_slice(&payload));
}
