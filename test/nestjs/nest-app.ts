import 'reflect-metadata'
import { type INestApplicationContext, type LoggerService, Module, type ModuleMetadata } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { onTestFinished } from 'vitest'

/** What an application wrote to its log. */
export class KeptLog implements LoggerService {
  readonly lines: string[] = []

  log = this.#at('log')
  error = this.#at('error')
  warn = this.#at('warn')
  debug = this.#at('debug')
  verbose = this.#at('verbose')
  fatal = this.#at('fatal')

  #at(level: string): (message: unknown, ...more: unknown[]) => void {
    return (message, ...more) => {
      const context = more.at(-1)
      const text = message instanceof Error ? message.message : String(message)
      this.lines.push(`${level} ${String(context)} ${text}`)
    }
  }
}

/** Starts a real application, without HTTP; it is closed with the test. */
export async function startApp(
  metadata: ModuleMetadata,
): Promise<{ readonly app: INestApplicationContext; readonly log: KeptLog }> {
  const log = new KeptLog()
  const app = await openApp(metadata, log)
  onTestFinished(() => app.close())
  return { app, log }
}

/** The same; the caller closes it. */
export function openApp(metadata: ModuleMetadata, log = new KeptLog()): Promise<INestApplicationContext> {
  return NestFactory.createApplicationContext(rootOf(metadata), { logger: log, abortOnError: false })
}

function rootOf(metadata: ModuleMetadata) {
  class AppModule {}
  Module(metadata)(AppModule)
  return AppModule
}
