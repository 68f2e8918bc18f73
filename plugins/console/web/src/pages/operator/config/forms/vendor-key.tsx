/** The stored key of a vendor: pasted, tested, stored or replaced; and models of the vendor's own list, ticked to be added. */
import { Alert, Button, Fieldset, Group, MultiSelect, PasswordInput, Stack, Text } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { askAgain } from '../../../../api/again.ts';
import { send } from '../../../../api/client.ts';
import { ErrorState } from '../../../../parts/states.tsx';
import { useWork } from '../../../../parts/use-work.ts';
import { answerKey, useAnswer } from '../../parts/load.tsx';
import type { ListedModel, VendorAnswer, VendorSecret } from '../../types.ts';
import { useForms } from './context.ts';
import type { FormMap } from './edit-yaml.ts';
import { fileFor, formValueOf, layersOf, namesAt, type Whole, wholeAt } from './layers.ts';

const secretsPath = '/admin/secrets';

/** `secret`: the name that the vendor's keys refer to. */
export function VendorKey({ name, secret }: { readonly name: string; readonly secret: string }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const { layers, drafts } = useForms();
  const { data } = useAnswer<{ readonly rows: readonly VendorSecret[] }>(secretsPath);
  const [key, setKey] = useState('');
  const [answer, setAnswer] = useState<VendorAnswer>();
  const { busy, problem, run } = useWork((error) => error);
  const stored = data?.rows.find((row) => row.name === secret);
  const isStored = stored !== undefined && stored.state !== 'missing';
  const given = key.trim() === '' ? {} : { key: key.trim() };
  const isSaved = namesAt(layersOf(drafts.map(({ file, base }) => ({ ...file, text: base }))), ['providers']).includes(
    name,
  );
  const test = () =>
    run(async () => {
      const written = (wholeAt(layers, ['providers', name]) ?? {}) as Readonly<Record<string, Whole>>;
      const { preset, speaks } = written;
      const draft = isSaved
        ? {}
        : { ...(preset === undefined ? {} : { preset }), ...(speaks === undefined ? {} : { speaks }) };
      setAnswer(await send<VendorAnswer>('POST', '/admin/vendors/test', { name, ...draft, ...given }));
    });
  const store = () =>
    run(async () => {
      const overlap = isStored ? { overlap: 'worked' } : {};
      await send('POST', secretsPath, { name: secret, value: key.trim(), ...overlap });
      setKey('');
      notifications.show({ message: t('operator.config.forms.stored.done'), color: 'teal' });
      await askAgain(client, answerKey(secretsPath));
    });
  return (
    <Fieldset legend={t('operator.config.forms.stored.title')} mt="sm">
      <Stack gap="sm">
        <Text fz="sm" c="dimmed">
          <State stored={stored} name={secret} /> {t('operator.config.forms.stored.hint')}
        </Text>
        <Group align="flex-end" gap="xs">
          <PasswordInput
            label={t('operator.config.forms.stored.paste')}
            value={key}
            className="grow"
            autoComplete="off"
            onChange={({ currentTarget }) => setKey(currentTarget.value)}
          />
          <Button
            variant="default"
            loading={busy}
            disabled={key.trim() === '' && !isStored}
            onClick={() => void test()}
          >
            {t('operator.config.forms.stored.test')}
          </Button>
          <Button loading={busy} disabled={key.trim() === ''} onClick={() => void store()}>
            {t(isStored ? 'operator.config.forms.stored.replace' : 'operator.config.forms.stored.store')}
          </Button>
        </Group>
        {isStored && key !== '' && <Text fz="xs">{t('operator.config.forms.stored.replaceHint')}</Text>}
        {problem !== undefined && <ErrorState error={problem} />}
        {answer !== undefined && <Answer answer={answer} provider={name} />}
      </Stack>
    </Fieldset>
  );
}

function State({ stored, name }: { readonly stored: VendorSecret | undefined; readonly name: string }) {
  const { t } = useTranslation();
  if (stored === undefined || stored.state === 'missing')
    return <>{t('operator.config.forms.stored.none', { name })}</>;
  if (stored.state === 'unreadable') return <>{t('operator.config.forms.stored.unreadable')}</>;
  const { lastFour, fingerprint, setBy } = stored;
  return <>{t('operator.config.forms.stored.stored', { end: `…${lastFour}`, fingerprint, by: setBy ?? '–' })}</>;
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
