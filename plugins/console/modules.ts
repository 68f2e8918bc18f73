/** The ES modules of pages that plugins add, as files under `/console/modules/`. */
import { readFile } from 'node:fs/promises';
import type { Answer } from '../../core/contract/message.ts';
import type { AdminPage } from '../common/domain/admin/admin-pages.ts';
import { compressed } from './compress.ts';

export const mostModuleBytes = 4 * 1024 * 1024;
const folder = 'modules/';

/** Where a page's module is, below the gateway's origin. */
export const moduleAddress = ({ name }: AdminPage) => `/console/${folder}${name}.js`;

/** `path` begins behind `/console/`. undefined: it names no module. */
export async function moduleAnswer(
  pages: readonly AdminPage[],
  path: string,
  accepted: string,
): Promise<Answer | undefined> {
  const page = pages.find((one) => moduleAddress(one) === `/console/${path}`);
  if (page === undefined) return undefined;
  const body = await readFile(page.module);
  // Read again each time: a page that was built again is shown without a restart.
  const headers = { 'content-type': 'text/javascript; charset=utf-8', 'cache-control': 'no-cache' };
  return compressed({ status: 200, headers, body }, accepted);
}
