/** A question to one or two models in the protocol of one's choice, with time, tokens and cost of each answer. */
import { Box, Group, NumberInput, Select, SimpleGrid } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { modelsQuery } from '../../../../api/models.ts';
import type { ModelRow } from '../../../../api/types.ts';
import { countText, durationText } from '../../../../parts/format.ts';
import { Panel } from '../../../../parts/page.tsx';
import { useSearchState } from '../../../../parts/search-state.ts';
import { AsCode } from '../as-code.tsx';
import { Bench, type KindProps } from '../bench.tsx';
import { Measures } from '../measures.tsx';
import { Refused } from '../problem.tsx';
import { Ask } from './ask.tsx';
import { Conversation } from './conversation.tsx';
import { Instructions } from './instructions.tsx';
import { callOf, protocolNames } from './protocols.ts';
import { ToolChoice, useChosenTools, useRunCost } from './tools.tsx';
import type { Parameters, Turn } from './turn.ts';
import { useTalk } from './use-talk.ts';

type Talk = ReturnType<typeof useTalk> & { readonly model: string };

export default function Chat({ model: { id: model }, apiKey, head }: KindProps<ModelRow>) {
  const [search] = useSearchState();
  const [system, setSystem] = useState('');
  const [parameters, setParameters] = useState<Parameters>({});
  const chats = (useQuery(modelsQuery).data?.rows ?? []).filter(({ kind, allowed }) => kind === 'chat' && allowed);
  const beside = search['beside'];
  const protocol = protocolNames.find((name) => name === search['protocol']) ?? 'chat';
  const tools = useChosenTools();
  const shared = { system, parameters, tools };
  const first = { ...useTalk(apiKey, protocol, { model, ...shared }), model };
  const second = { ...useTalk(apiKey, protocol, { model: beside ?? '', ...shared }), model: beside ?? '' };
  const talks: readonly Talk[] = beside === undefined ? [first] : [first, second];
  const takesImages = talks.every((talk) => chats.find(({ id }) => id === talk.model)?.modalities.includes('image'));
  const hello = {
    model,
    system: system.trim(),
    messages: [{ role: 'user', content: 'Hello' }] as const,
    parameters,
    tools,
  };
  return (
    <Bench
      settings={
        <>
          {head}
          <Choices ids={chats.map(({ id }) => id)} model={model} beside={beside} protocol={protocol} />
          <ToolChoice />
          <Instructions value={system} onChange={setSystem} />
          <ParameterFields of={parameters} onChange={setParameters} />
        </>
      }
      measures={talks.map(
        ({ turn, busy, model: name }) =>
          turn !== undefined && (
            <TurnMeasures key={name} turn={turn} busy={busy} apiKey={apiKey} {...(talks.length > 1 ? { name } : {})} />
          ),
      )}
    >
      <Answers talks={talks} ready={apiKey !== ''} withImages={takesImages} />
      <AsCode call={first.sent ?? callOf(protocol, hello)} apiKey={apiKey} />
    </Bench>
  );
}

interface TurnMeasuresProps {
  readonly turn: Turn;
  readonly busy: boolean;
  readonly apiKey: string;
  readonly name?: string;
}

function TurnMeasures({ turn, apiKey, ...shown }: TurnMeasuresProps) {
  const { t, i18n } = useTranslation();
  // Each turn and tool of a run is charged by itself, its request costs nothing.
  const run = useRunCost(turn.steps.length > 0 && !shown.busy ? turn.requestId : undefined, apiKey);
  const count = (tokens: number | undefined) => (tokens === undefined ? '–' : countText(tokens, i18n.language));
  const facts = [
    [t('shell.word.firstByte'), durationText(turn.firstByteMs)],
    [t('shell.word.wholeAnswer'), durationText(turn.totalMs)],
    [t('client.playground.tokens'), `${count(turn.tokensIn)} / ${count(turn.tokensOut)}`],
  ] as const;
  return <Measures facts={facts} requestId={turn.requestId} {...(run === undefined ? {} : { cost: run })} {...shown} />;
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
            {problem !== undefined && (
              <Box px="md" pb="sm">
                <Refused problem={problem} />
              </Box>
            )}
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
        label={t('client.playground.beside')}
        placeholder={t('client.playground.noneBeside')}
        data={ids.filter((id) => id !== model)}
        value={beside ?? null}
        searchable
        clearable
        onChange={(value) => change({ beside: value ?? undefined })}
      />
      <Select
        label={t('shell.word.protocol')}
        data={[...protocolNames]}
        value={protocol}
        allowDeselect={false}
        onChange={(value) => change({ protocol: value === 'chat' ? undefined : (value ?? undefined) })}
      />
    </>
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
