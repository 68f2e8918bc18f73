/** Where a process of the gateway begins: gets ready to load the command line, which is most of the code, then loads it. */
import { collectLessOften, keepCompiled, rememberModules } from './loading.ts';

collectLessOften();
keepCompiled();
rememberModules();
await import('./command-line.ts');
