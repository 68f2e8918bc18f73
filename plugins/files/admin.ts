/** The service `fileAdmin`: uploaded files of all accounts. */
import type { Clock } from '../../core/contract/host-tools.ts';
import type { FileAdmin, OwnedFile } from '../common/domain/admin/files.ts';
import type { PageRequest } from '../common/domain/admin/pages.ts';
import { cursorFor, noSuchPage, pageOf, rowsFor, valuesIn } from '../common/kit/paging.ts';
import type { FileRows } from './rows.ts';
import type { UploadPage, UploadRows } from './upload-rows.ts';

export interface AdminTools {
  readonly rows: FileRows;
  readonly uploads: UploadRows;
  readonly clock: Clock;
}

export function openFileAdmin({ rows, uploads, clock }: AdminTools): FileAdmin {
  return {
    async list(filter, page) {
      const found = await uploads.listAll(filter, { limit: rowsFor(page), after: placeIn(page) }, clock.now());
      return pageOf(found, page, cursorOf, (file) => file);
    },
    find: (fileId) => uploads.findAny(fileId, clock.now()),
    storedBytes: (accountId) => rows.room.storedBytes(accountId),
    async remove(fileId) {
      const file = await uploads.findAny(fileId, clock.now());
      return file !== undefined && (await uploads.remove(file.accountId, fileId, clock.now()));
    },
  };
}

const cursorOf = ({ createdAt, id }: OwnedFile) => cursorFor([String(createdAt), id]);

function placeIn(page: PageRequest): UploadPage['after'] {
  const after = valuesIn(page, 'createdAt', 'id');
  if (after === undefined) return undefined;
  if (!/^\d{1,14}$/.test(after.createdAt)) throw noSuchPage();
  return { createdAt: Number(after.createdAt), id: after.id };
}
