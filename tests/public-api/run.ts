/** `npm run api`: writes the report of the public API. */
import { writeFileSync } from 'node:fs';
import { reportFile, reportOf } from './report.ts';
import { readSurface } from './surface.ts';

writeFileSync(reportFile, reportOf(readSurface()));
