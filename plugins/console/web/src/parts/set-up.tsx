/** How each kind of client is set up for this gateway: pick the client and the model, copy, call. */
import { Button, Chip, Group, SegmentedControl, Select, Stack, Text } from '@mantine/core';
import { useLocalStorage } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import {
  blocksOf,
  type ClientProgram,
  clientPrograms,
  connectCommand,
  type Filling,
  isConnectable,
  keyPlaceholder,
  linksOf,
  type Shell,
  shellNames,
  shells,
} from '../../../../../core/tools/client-programs.ts';
import { modelsQuery } from '../api/models.ts';
import { has, useInfo, useMe } from '../api/session.ts';
import type { ModelRow } from '../api/types.ts';
import { type ApiCall, sampleCall } from '../calls/call.ts';
import { type Access, codeLanguages, codeOf, languageNames } from '../calls/code.ts';
import { CodeBlock } from './code-block.tsx';
import './connect-texts.ts';
import { Steady } from './steady.tsx';

type Tool = ClientProgram & { readonly id: string };
const allTools: readonly Tool[] = Array.from(clientPrograms, ([id, program]) => ({ id, ...program }));
const chatTools = allTools.filter(({ makes }) => makes === undefined);
/** Programs that wait for their images: the gateway answers others with a task. */
const imageTools = allTools.filter(({ makes }) => makes === 'images');

interface SetUpProps {
  /** The key, while it is known. */
  readonly secret?: string;
}

export default function SetUp({ secret }: SetUpProps) {
  const { t } = useTranslation();
  const [chosen, setChosen] = useState<string | null>(null);
  const models = useModels();
  const model = models.find(({ id }) => id === chosen) ?? models[0];
  const { gateway } = useMe();
  const access = { base: gateway.origin, key: secret ?? keyPlaceholder };
  const small = model && smallOf(model, models);
  const filling = {
    ...access,
    model: model?.id ?? 'model',
    name: gateway.name,
    small: small?.id,
    context: model?.contextTokens ?? undefined,
    output: model?.maxOutputTokens ?? undefined,
    smallContext: small?.contextTokens ?? undefined,
    smallOutput: small?.maxOutputTokens ?? undefined,
  };
  const sample = model === undefined ? undefined : sampleCall(model.kind, model.id);
  return (
    <Stack gap="sm">
      {models.length > 1 && <ModelChoice models={models} model={model} onChange={setChosen} />}
      <Steady>
        {sample === undefined ? (
          <Tools filling={filling} known={secret !== undefined} model={chosen ?? undefined} />
        ) : (
          <Languages call={sample} access={access} filling={filling} />
        )}
      </Steady>
      {secret === undefined && (
        <Text fz="xs" c="dimmed">
          {t('client.setUp.keyHint', { placeholder: keyPlaceholder })}
        </Text>
      )}
    </Stack>
  );
}

interface ModelChoiceProps {
  readonly models: readonly ModelRow[];
  readonly model: ModelRow | undefined;
  readonly onChange: (id: string | null) => void;
}

function ModelChoice({ models, model, onChange }: ModelChoiceProps) {
  const { t } = useTranslation();
  const groups = Map.groupBy(models, ({ kind }) => kind);
  return (
    <Select
      size="xs"
      maw={280}
      label={t('shell.word.model')}
      data={[...groups].map(([kind, rows]) => ({
        group: t(`client.models.kinds.${kind}`),
        items: rows.map(({ id }) => id),
      }))}
      value={model?.id ?? null}
      onChange={onChange}
      searchable
      allowDeselect={false}
    />
  );
}

interface OneOfProps {
  readonly all: readonly { readonly id: string; readonly name: string }[];
  readonly value: string;
  readonly onChange: (id: string) => void;
}

function OneOf({ all, value, onChange }: OneOfProps) {
  const { t } = useTranslation();
  return (
    <Chip.Group value={value} onChange={onChange}>
      <Group gap={6} role="radiogroup" aria-label={t('client.setUp.client')}>
        {all.map(({ id, name }) => (
          <Chip key={id} value={id} size="xs" variant="light" radius="md">
            {name}
          </Chip>
        ))}
      </Group>
    </Chip.Group>
  );
}

/** Clients of conversations. */
interface ToolsProps {
  readonly filling: Filling;
  readonly known: boolean;
  /** The one that was chosen; undefined: the command chooses. */
  readonly model: string | undefined;
}

function Tools({ filling, known, model }: ToolsProps) {
  const [tool, setTool] = useState<Tool>(chatTools[0]!);
  return (
    <>
      <OneOf
        all={chatTools}
        value={tool.id}
        onChange={(id) => setTool(chatTools.find((one) => one.id === id) ?? tool)}
      />
      {!known && <Command tool={tool} base={filling.base} model={model} />}
      <Files tool={tool} filling={filling} />
      <Links tool={tool} filling={filling} known={known} />
    </>
  );
}

interface CommandProps {
  readonly tool: Tool;
  readonly base: string;
  readonly model: string | undefined;
}

/** Where a command can do all of it. */
function Command({ tool, base, model }: CommandProps) {
  const { t } = useTranslation();
  const [shell] = useShell();
  const docs = useInfo()?.brand.docs ?? null;
  const canAsk = has(useMe(), 'accounts') && docs !== null;
  if (!canAsk || tool.files === undefined || !isConnectable(tool)) return null;
  return (
    <>
      <Text fz="sm">{t('client.connect.oneLine')}</Text>
      <CodeBlock text={connectCommand(tool.id, base, model, shell)} label={`connect ${tool.name}`} />
      <Text fz="sm">{t('client.connect.byHand')}</Text>
    </>
  );
}

const usualShell: Shell = navigator.userAgent.includes('Windows') ? 'powershell' : 'sh';
const useShell = () => useLocalStorage<Shell>({ key: 'console-shell', defaultValue: usualShell });

function Files({ tool, filling }: { readonly tool: Tool; readonly filling: Filling }) {
  const { t } = useTranslation();
  const [shell, setShell] = useShell();
  const blocks = blocksOf(tool, filling, shell);
  return (
    <>
      {blocks.some(({ language }) => language === 'sh') && (
        <SegmentedControl
          size="xs"
          w="fit-content"
          aria-label={t('client.setUp.shell')}
          data={shells.map((value) => ({ value, label: shellNames[value] }))}
          value={shell}
          onChange={(value) => setShell(value as Shell)}
        />
      )}
      {blocks.map(({ language, text, saveAs }) => (
        <CodeBlock key={`${language} ${saveAs}`} text={text} title={saveAs} label={tool.name} />
      ))}
    </>
  );
}

const languages = codeLanguages.map((id) => ({ id, name: languageNames[id] }));

interface LanguagesProps {
  readonly call: ApiCall;
  readonly access: Access;
  readonly filling: Filling;
}

/** Other kinds of models are called by programs; some image models have templates. */
function Languages({ call, access, filling }: LanguagesProps) {
  const [chosen, setChosen] = useState('curl');
  const tools = call.name === 'image' ? imageTools : [];
  const tool = tools.find(({ id }) => id === chosen);
  const language = codeLanguages.find((one) => one === chosen) ?? 'curl';
  return (
    <>
      <OneOf all={[...languages, ...tools]} value={tool?.id ?? language} onChange={setChosen} />
      {tool === undefined ? (
        <CodeBlock text={codeOf(language, call, access)} label={languageNames[language]} />
      ) : (
        <Files tool={tool} filling={filling} />
      )}
    </>
  );
}

interface LinksProps {
  readonly tool: Tool;
  readonly filling: Filling;
  /** Whether the key is: a link without it would set up nothing. */
  readonly known: boolean;
}

/** Opens the program with everything filled in. */
function Links({ tool, filling, known }: LinksProps) {
  const { t } = useTranslation();
  const links = linksOf(tool, filling);
  if (links.length === 0) return null;
  if (!known)
    return (
      <Text fz="sm" c="dimmed">
        {t('client.setUp.linkHint', { tool: tool.name })}
      </Text>
    );
  return (
    <Group gap="xs">
      {links.map(([app, address]) => (
        <Button key={app} component="a" size="xs" variant="default" href={address}>
          {t('client.setUp.open', { tool: tool.name, app })}
        </Button>
      ))}
    </Group>
  );
}

/** Models that this person's plan has and that a first call can be shown for, those of conversations first. */
function useModels(): readonly ModelRow[] {
  const { data } = useQuery(modelsQuery);
  const usable = (data?.rows ?? []).filter(
    ({ id, kind, allowed }) => allowed && (kind === 'chat' || sampleCall(kind, id) !== undefined),
  );
  return usable.toSorted((left, right) => Number(right.kind === 'chat') - Number(left.kind === 'chat'));
}

/** The cheapest model of the same maker: what coding clients ask for titles and summaries. */
function smallOf(model: ModelRow, models: readonly ModelRow[]): ModelRow {
  const costOf = ({ prices }: ModelRow) =>
    Number(prices?.lines.find((line) => line.class === 'input')?.yours ?? Number.POSITIVE_INFINITY);
  return models
    .filter(({ ownedBy, kind }) => ownedBy === model.ownedBy && kind === model.kind)
    .reduce((least, next) => (costOf(next) < costOf(least) ? next : least), model);
}
