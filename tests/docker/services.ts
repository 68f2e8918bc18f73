/** compose.scale.yaml as compose reads it, with the stores' addresses as they are on this machine. */
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { startPostgres, type TestPostgres } from '../helpers/postgres.ts';
import { startRedis, type TestRedis } from '../helpers/redis.ts';

export interface Service {
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly healthcheck: { readonly test: readonly string[] };
}

export const { services } = parse(readFileSync('docker/compose.scale.yaml', 'utf8'), { merge: true }) as {
  services: Record<'gateway-1' | 'postgres' | 'redis', Service>;
};
export const gatewayService = services['gateway-1'];

/** What an operator writes into .env. */
export const settings = {
  POSTGRES_PASSWORD: 'a-password',
  SEAL_SECRET: 'a secret that all of them share, for seals',
  AUTH_SECRET: 'a secret that all of them share, for keys',
  S3_SECRET_ACCESS_KEY: 'a secret that all of them share, for files',
};

/** `${NAME:-default}` and `${NAME:?}`. Throws for a variable that must be set and is not. */
export function interpolate(text: string, variables: Readonly<Record<string, string>>): string {
  return text.replaceAll(
    /\$\{(\w+)(?::([-?])([^}]*))?\}/g,
    (_, name: string, kind: string | undefined, rest: string) => {
      const value = variables[name] ?? '';
      if (value === '' && kind === '?') throw new Error(`the variable ${name} must be set`);
      return value === '' && kind === '-' ? rest : value;
    },
  );
}

export interface Stores {
  readonly postgres: TestPostgres;
  readonly redis: TestRedis;
  /** The variables of the service `gateway`. */
  readonly variables: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

/** The services `postgres` and `redis`, with the database and the command that the file names. */
export async function startStores(): Promise<Stores> {
  const [postgres, redis] = await Promise.all([startPostgres(), startRedis(services.redis.command.slice(1))]);
  postgres.sql(`create database ${services.postgres.environment['POSTGRES_DB']}`);
  const here = (value: string) =>
    interpolate(value, settings)
      .replace('@postgres:5432/', `@127.0.0.1:${postgres.port}/`)
      .replace('redis:6379', `127.0.0.1:${redis.port}`);
  return {
    postgres,
    redis,
    variables: Object.fromEntries(
      Object.entries(gatewayService.environment).map(([name, value]) => [name, here(value)]),
    ),
    close: async () => void (await Promise.all([postgres.close(), redis.stop()])),
  };
}
