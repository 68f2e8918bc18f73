/** The stored key of a vendor, tested; and models of the vendor's own list, ticked to be added. */
import { Alert, Button, Group, MultiSelect, Text } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { send } from '../../../../api/client.ts';
import { ErrorState } from '../../../../parts/states.tsx';
import { useWork } from '../../../../parts/use-work.ts';
import type { ListedModel, VendorAnswer } from '../../types.ts';
import { useForms } from './context.ts';
import type { FormMap } from './edit-yaml.ts';
import { fileFor, formValueOf, layersOf, namesAt, type Whole, wholeAt } from './layers.ts';
import { StoredSecret } from './stored-secret.tsx';

/** `secret`: the name that the vendor's keys refer to. */
export function VendorKey({ name, secret }: { readonly name: string; readonly secret: string }) {
  const { t } = useTranslation();
  const { layers, drafts } = useForms();
  const [answer, setAnswer] = useState<VendorAnswer>();
  const { busy, problem, run } = useWork((error) => error);
  const saved = layersOf(drafts.map(({ file, base }) => ({ ...file, writable: false, text: base })));
  const isSaved = namesAt(saved, ['providers']).includes(name);
  const test = (given: string) =>
    run(async () => {
      const written = (wholeAt(layers, ['providers', name]) ?? {}) as Readonly<Record<string, Whole>>;
      const { preset, speaks } = written;
      const draft = isSaved
        ? {}
        : { ...(preset === undefined ? {} : { preset }), ...(speaks === undefined ? {} : { speaks }) };
      const key = given === '' ? {} : { key: given };
      setAnswer(await send<VendorAnswer>('POST', '/admin/vendors/test', { name, ...draft, ...key }));
    });
  return (
    <StoredSecret
      name={secret}
      beside={(given, isStored) => (
        <Button variant="default" loading={busy} disabled={given === '' && !isStored} onClick={() => void test(given)}>
          {t('operator.config.forms.stored.test')}
        </Button>
      )}
    >
      {problem !== undefined && <ErrorState error={problem} />}
      {answer !== undefined && <Answer answer={answer} provider={name} />}
    </StoredSecret>
  );
}

function Answer({ answer, provider }: { readonly answer: VendorAnswer; readonly provider: string }) {
  const { t } = useTranslation();
  const { layers, drafts } = useForms();
  const [chosen, setChosen] = useState<readonly string[]>([]);
  if (!answer.ok)
    return (
      <Alert color="red" variant="light">
        {answer.isPrivate ? t('operator.config.forms.stored.private') : answer.error}
      </Alert>
    );
  const offered = answer.models.filter(({ state }) => state !== 'served');
  const draft = drafts.find(({ file }) => file.name === fileFor(layers, ['models', ''])?.name);
  const add = () => {
    const members = answer.models
      .filter(({ id }) => chosen.includes(id))
      .map((model) => memberOf(model, provider, layers));
    if (draft?.setMembers(members) === true) setChosen([]);
  };
  return (
    <>
      <Text fz="sm">{t('operator.config.forms.stored.answered', { count: answer.models.length })}</Text>
      <Group align="flex-end" gap="xs">
        <MultiSelect
          label={t('operator.config.forms.stored.models')}
          className="grow"
          searchable
          data={offered.map(({ id, state }) => ({
            value: id,
            label: `${id} (${t(`operator.config.forms.stored.${state}`)})`,
          }))}
          value={[...chosen]}
          disabled={draft === undefined}
          onChange={setChosen}
        />
        <Button variant="default" disabled={chosen.length === 0} onClick={add}>
          {t('operator.config.forms.stored.add')}
        </Button>
      </Group>
    </>
  );
}

/** A new entry, or one more target of a model that is there. */
function memberOf({ id, state, entry }: ListedModel, provider: string, layers: ReturnType<typeof useForms>['layers']) {
  if (state !== 'known') return { path: ['models', id], value: formValueOf(wholeOf(entry)) as FormMap };
  const path = ['models', id, 'targets'];
  const written = wholeAt(layers, path) ?? [];
  const targets = Array.isArray(written) ? (written as readonly Whole[]) : [written];
  return { path, value: [...targets.map((target) => formValueOf(target) as string | FormMap), `${provider}/${id}`] };
}

function wholeOf(value: unknown): Whole {
  if (Array.isArray(value)) return value.map(wholeOf);
  if (typeof value !== 'object' || value === null) return String(value);
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, wholeOf(inner)]));
}
