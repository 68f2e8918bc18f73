/** Where a process of the gateway begins: gets ready to load the command line, which is most of the code, then loads it. */
import './compiled.js';
import { collectLessOften, rememberModules } from './loading.ts';

collectLessOften();
rememberModules();
await import('./command-line.ts');
