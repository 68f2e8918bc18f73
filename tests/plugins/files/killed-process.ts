/** A process that keeps films without end, telling each that is kept, until it is killed. Arguments: directory, gateway file. */
import { boot } from '../../../core/gateway/boot.ts';
import { files } from '../../../plugins/common/domain/stored-files.ts';
import { mp4, never, owner } from './setup.ts';

const [file, directory] = process.argv.slice(2);
const gateway = await boot(file!, {
  mode: 'serve',
  environment: { PORT: '0', DATA_DIR: directory! },
  log: { debug() {}, info() {}, warn() {}, error() {}, record() {} },
});
await gateway.serve();
const keeper = gateway.find(files)!;
const keepOn = async (task: string) => {
  for (let number = 0; ; number++) {
    const { id } = await keeper.keep(mp4, 'video', owner(task, number), never);
    process.stdout.write(`${id}\n`);
  }
};
await Promise.all([keepOn('a'), keepOn('b'), keepOn('c')]);
