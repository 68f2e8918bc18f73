/** The official Google client before two processes behind a proxy: the suite of the main gateway, unchanged. */
import { hasFleet } from './fleet.ts';

if (hasFleet) {
  process.env['SDK_GATEWAY'] = 'fleet';
  await import('./google.test.ts');
}
