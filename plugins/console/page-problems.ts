/** Whether the pages that plugins add fit: names, paths, modules. */
import { statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Fault } from '../../core/contract/contract.ts';
import type { AdminPage, AdminRoute } from '../common/domain/admin/admin-pages.ts';
import { access } from './api/routing/access.ts';
import { mostModuleBytes } from './modules.ts';

/** Segments below `/admin` that belong to the console's own pages and routes. */
const taken = new Set([
  'overview',
  ...Object.keys(access).flatMap((row) => /\/admin\/([a-z-]+)/.exec(row)?.slice(1) ?? []),
]);

/** The path of a page's route in the API. */
export const routePath = (page: AdminPage, { path }: AdminRoute) => `/admin/${page.name}${path}`;

/** One sentence for each thing that prevents a page from being shown. */
export function problemsOf(pages: readonly AdminPage[]): readonly Fault[] {
  return pages.flatMap((page) => sentencesOf(page).map((message) => ({ path: [], message })));
}

function sentencesOf(page: AdminPage): string[] {
  const { name, routes = [] } = page;
  if (!/^[a-z][a-z0-9-]{0,40}$/.test(name))
    return [`the admin page "${name}" needs a name of small letters, digits and dashes`];
  if (taken.has(name)) return [`the admin page "${name}" has a name that the console uses itself: give it another`];
  const found: string[] = [];
  const seen = new Set<string>();
  for (const one of routes) {
    const line = `${one.method} ${routePath(page, one)}`;
    if (!/^(?:\/(?:[a-z0-9-]+|:[a-z]\w*))*$/i.test(one.path))
      found.push(`the admin page "${name}" has a route with the path "${one.path}": write it such as "/rows/:id"`);
    const shape = line.replaceAll(/:\w+/g, ':');
    if (seen.has(shape)) found.push(`the admin page "${name}" brings the route ${line} twice`);
    seen.add(shape);
  }
  const size = sizeOf(page.module);
  if (size === undefined) found.push(`the module of the admin page "${name}" is not there: ${page.module.pathname}`);
  else if (size > mostModuleBytes)
    found.push(`the module of the admin page "${name}" is larger than ${mostModuleBytes} bytes`);
  return found;
}

function sizeOf(module: URL): number | undefined {
  try {
    return statSync(fileURLToPath(module)).size;
  } catch {
    return undefined;
  }
}
