/** Sends a question to one or two models with the address, key and protocol that programs use, and shows time, tokens and cost. */
import { Alert, Box, Grid, Group, NumberInput, Select, SimpleGrid, Stack } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { modelsQuery } from '../../../api/models.ts';
import { useMe } from '../../../api/session.ts';
import { CodeBlock } from '../../../parts/code-block.tsx';
import { TextLink } from '../../../parts/entry-frame.tsx';
import { Page, Panel } from '../../../parts/page.tsx';
import { useSearchState } from '../../../parts/search-state.ts';
import { keyPlaceholder } from '../../../snippets/index.ts';
import { SessionKey, useSessionKey } from '../session-key.tsx';
import { Ask } from './ask.tsx';
import { Conversation } from './conversation.tsx';
import { Instructions } from './instructions.tsx';
import { Measures } from './measures.tsx';
import { protocolNames, requestOf } from './protocols.ts';
import { curlOf, type Parameters } from './talk.ts';
import { type Problem, useTalk } from './use-talk.ts';

type Talk = ReturnType<typeof useTalk> & { readonly model: string };

export default function Playground() {
  const { t } = useTranslation();
  const [search] = useSearchState();
  const [system, setSystem] = useState('');
  const [key, setKey] = useSessionKey();
  const [parameters, setParameters] = useState<Parameters>({});
  const chats = (useQuery(modelsQuery).data?.rows ?? []).filter(({ kind, allowed }) => kind === 'chat' && allowed);
  const model = search['model'] ?? chats[0]?.id ?? '';
  const beside = search['beside'];
  const protocol = protocolNames.find((name) => name === search['protocol']) ?? 'chat';
  const first = { ...useTalk(key, protocol, { model, system, parameters }), model };
  const second = { ...useTalk(key, protocol, { model: beside ?? '', system, parameters }), model: beside ?? '' };
  const talks: readonly Talk[] = beside === undefined ? [first] : [first, second];
  const takesImages = talks.every((talk) => chats.find(({ id }) => id === talk.model)?.modalities.includes('image'));
  return (
    <Page title={t('client.playground.title')} hint={t('client.playground.hint')}>
      <Grid gap="md">
        <Grid.Col span={{ base: 12, md: 8 }}>
          <Answers talks={talks} ready={key !== '' && model !== ''} withImages={takesImages} />
        </Grid.Col>
        <Grid.Col span={{ base: 12, md: 4 }}>
          <Stack gap="md">
            <Panel>
              <Stack gap="sm">
                <Choices ids={chats.map(({ id }) => id)} model={model} beside={beside} protocol={protocol} />
                <SessionKey value={key} onChange={setKey} />
                <Instructions value={system} onChange={setSystem} />
                <ParameterFields of={parameters} onChange={setParameters} />
              </Stack>
            </Panel>
            {talks.map(
              ({ turn, busy, model: name }) =>
                turn !== undefined && (
                  <Measures key={name} turn={turn} busy={busy} {...(talks.length > 1 ? { name } : {})} />
                ),
            )}
            <AsCurl of={first.sent} />
          </Stack>
        </Grid.Col>
      </Grid>
    </Page>
  );
}

interface AnswersProps {
  readonly talks: readonly Talk[];
  readonly ready: boolean;
  readonly withImages: boolean;
}

/** The conversations side by side; a question goes to all of them. */
function Answers({ talks, ready, withImages }: AnswersProps) {
  return (
    <Panel flush>
      <SimpleGrid cols={{ base: 1, sm: talks.length }} spacing={0}>
        {talks.map(({ model, messages, turn, busy, problem }) => (
          <div key={model}>
            <Conversation messages={messages} turn={turn} busy={busy} {...(talks.length > 1 ? { name: model } : {})} />
            {problem !== undefined && <Refused problem={problem} />}
          </div>
        ))}
      </SimpleGrid>
      <Ask
        ready={ready}
        busy={talks.some(({ busy }) => busy)}
        withImages={withImages}
        isEmpty={talks.every(({ messages }) => messages.length === 0)}
        onAsk={(question, images) => {
          for (const talk of talks) void talk.ask(question, images);
        }}
        onStop={() => {
          for (const talk of talks) talk.stop();
        }}
        onReset={() => {
          for (const talk of talks) talk.reset();
        }}
      />
    </Panel>
  );
}

interface ChoicesProps {
  readonly ids: readonly string[];
  readonly model: string;
  readonly beside: string | undefined;
  readonly protocol: string;
}

/** They live in the address bar. */
function Choices({ ids, model, beside, protocol }: ChoicesProps) {
  const { t } = useTranslation();
  const [, change] = useSearchState();
  return (
    <>
      <Select
        label={t('client.playground.model')}
        data={[...ids]}
        value={model}
        searchable
        allowDeselect={false}
        onChange={(value) => change({ model: value ?? undefined })}
      />
      <Select
        label={t('client.playground.beside')}
        placeholder={t('client.playground.noneBeside')}
        data={ids.filter((id) => id !== model)}
        value={beside ?? null}
        searchable
        clearable
        onChange={(value) => change({ beside: value ?? undefined })}
      />
      <Select
        label={t('client.usage.protocol')}
        data={[...protocolNames]}
        value={protocol}
        allowDeselect={false}
        onChange={(value) => change({ protocol: value === 'chat' ? undefined : (value ?? undefined) })}
      />
    </>
  );
}

/** Money that is missing can be added. */
function Refused({ problem: { text, status } }: { readonly problem: Problem }) {
  const { t } = useTranslation();
  return (
    <Box px="md" pb="sm">
      <Alert color="red" variant="light" role="alert">
        {text} {status === 402 && <TextLink to="/wallet">{t('client.wallet.topUp')}</TextLink>}
      </Alert>
    </Box>
  );
}

function AsCurl({ of: sent }: { readonly of: Talk['sent'] }) {
  const { t } = useTranslation();
  const base = useMe().gateway.origin;
  if (sent === undefined) return null;
  const request = requestOf(sent.protocol, sent.conversation, keyPlaceholder);
  return (
    <Panel title={t('client.playground.curl')}>
      <CodeBlock label={t('client.playground.curl')} text={curlOf(base, request)} />
    </Panel>
  );
}

interface ParameterFieldsProps {
  readonly of: Parameters;
  readonly onChange: (parameters: Parameters) => void;
}

/** Left empty: as the vendor has it. */
function ParameterFields({ of: { temperature, maxTokens }, onChange }: ParameterFieldsProps) {
  const { t } = useTranslation();
  const given = (name: keyof Parameters, value: string | number | undefined) =>
    typeof value === 'number' ? { [name]: value } : {};
  return (
    <Group grow gap="xs" align="flex-start">
      <NumberInput
        label={t('client.playground.temperature')}
        placeholder={t('client.playground.usual')}
        min={0}
        max={2}
        step={0.1}
        value={temperature ?? ''}
        onChange={(value) => onChange({ ...given('maxTokens', maxTokens), ...given('temperature', value) })}
      />
      <NumberInput
        label={t('client.playground.maxTokens')}
        placeholder={t('client.playground.usual')}
        min={1}
        allowDecimal={false}
        value={maxTokens ?? ''}
        onChange={(value) => onChange({ ...given('temperature', temperature), ...given('maxTokens', value) })}
      />
    </Group>
  );
}
