/** Helm and what validates manifests: those of this machine, or made through the package registries and kept in the user's cache directory. */
import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';

const cannot = 77;
const helmModule = 'helm.sh/helm/v3/cmd/helm@v3.22.0';
const composePackage = 'github.com/compose-spec/compose-go/v2/cli';
const composeVersion = 'v2.16.2';
const schemasPackage = 'kubernetes-validate==1.37.0';
const validatorSource = join(import.meta.dirname, 'validator');
const tools = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'model-gateway-tools');

/** Prints the project as JSON, or says on standard error what is wrong with it. */
const composeLoader = `package main

import (
	"context"
	"fmt"
	"os"

	"${composePackage}"
)

func main() {
	options, err := cli.NewProjectOptions(os.Args[1:], cli.WithOsEnv, cli.WithDotEnv)
	check(err)
	project, err := options.LoadProject(context.Background())
	check(err)
	text, err := project.MarshalJSON()
	check(err)
	fmt.Println(string(text))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
`;

/** undefined: it is neither installed nor was it made before. */
export function installedHelm(): string | undefined {
  const made = join(tools, 'helm');
  return existsSync(made) ? made : spawnSync('helm', ['version']).status === 0 ? 'helm' : undefined;
}

export function findHelm(): string {
  mkdirSync(tools, { recursive: true });
  const found = installedHelm();
  if (found === undefined) obtain('helm', 'go', ['install', helmModule], { env: { ...process.env, GOBIN: tools } });
  return found ?? join(tools, 'helm');
}

/** The schemas that Kubernetes publishes, of each version. */
export function findSchemas(): string {
  const environment = join(tools, schemasPackage);
  const path = join(environment, 'bin/kubernetes-validate');
  if (existsSync(path)) return path;
  obtain('the Kubernetes schemas', 'python3', ['-m', 'venv', environment]);
  obtain('the Kubernetes schemas', join(environment, 'bin/pip'), ['install', '--quiet', schemasPackage]);
  return path;
}

/** The API server's own validation, of the version in `validator/go.mod`. */
export function findValidator(): string {
  const sum = createHash('sha256');
  for (const name of ['main.go', 'go.sum']) sum.update(readFileSync(join(validatorSource, name)));
  const path = join(tools, `validator-${sum.digest('hex').slice(0, 16)}`);
  if (!existsSync(path))
    building((source) => {
      cpSync(validatorSource, source, { recursive: true });
      obtain("the API server's validation", 'go', ['build', '-o', path, '.'], { cwd: source });
    });
  return path;
}

export function findComposeLoader(): string {
  const path = join(tools, `compose-${composeVersion}`);
  if (!existsSync(path))
    building((source) => {
      writeFileSync(join(source, 'main.go'), composeLoader);
      const go = (...words: string[]) => obtain('a compose implementation', 'go', words, { cwd: source });
      go('mod', 'init', 'compose');
      go('get', `${composePackage}@${composeVersion}`);
      go('build', '-o', path, '.');
    });
  return path;
}

function building(work: (source: string) => void): void {
  const source = mkdtempSync(join(tmpdir(), 'tool-'));
  const remove = () => rmSync(source, { recursive: true, force: true });
  process.once('exit', remove);
  work(source);
  process.off('exit', remove);
  remove();
}

function obtain(
  what: string,
  program: string,
  words: readonly string[],
  options: { cwd?: string; env?: NodeJS.ProcessEnv } = {},
): SpawnSyncReturns<string> {
  console.log(`${what}: ${program} ${words.join(' ')}`);
  const result = spawnSync(program, words, { ...options, encoding: 'utf8' });
  if (result.status === 0) return result;
  console.error(result.error?.message ?? result.stderr);
  console.error(`${what} is not installed and cannot be had. Nothing was tried.`);
  process.exit(cannot);
}
